"""Which programs are near which, by texts and the registry alone."""

import math
from dataclasses import replace

import pytest
from helpers.registry_samples import TARGET, TVM, record

from ansor_deploy.cli.plan import Plan
from ansor_deploy.model.tasks import Task
from ansor_deploy.registry.record import SearchEnd, TaskKey, Workload
from ansor_deploy.request import Budget, Request
from ansor_deploy.space.rule_files import rules_digest
from ansor_deploy.system.digest import sha256
from ansor_deploy.tune.ledger import Ledger
from ansor_deploy.tune.plan import make_plan
from ansor_deploy.tune.search.neighbours import (
    FARTHEST,
    NEAREST,
    OTHER_MACHINE,
    OTHER_WINDOW,
    distance,
    nearest,
)
from ansor_deploy.tune.standing import SERVED
from ansor_deploy.views.plan import details, outcomes

WHEN = "2026-01-31T12:00:00Z"
SHIPPED = rules_digest([], "llvm")
ELSEWHERE = replace(TARGET, vector_bytes=32)
LIKE = replace(TARGET, name="like", cores=2, l2_bytes=1 << 20)  # but for cores and caches the same


def conv(side, cin, cout, kernel=3, stride=1, family="conv"):
    """A convolution as canonical texts have it, its padding before and a ReLU after it."""
    into = f"T.grid(T.int64(1), T.int64({side}), T.int64({side}), T.int64({cout})"
    text = f"""
    for v1, v2, v3 in T.grid(T.int64(1), T.int64({side + 2}), T.int64({side + 2})):
        with T.sblock('b0'):
            v4, v5, v6 = T.axis.remap('SSS', [v1, v2, v3])
            T.reads(v0[v4, v5 - 1, v6 - 1])
    for v7, v8, v9, v10, v11, v12, v13 in {into}, {kernel}, {kernel}, T.int64({cin})):
        with T.sblock('b1'):
            v14, v15, v16, v17, v18, v19, v20 = T.axis.remap('SSSSRRR', [v7, v8])
            T.reads(v4[v14, v15 * {stride} + v18, v16 * {stride} + v19, v20], v1[v18, v19, v20])
    for v1, v2, v3, v4 in {into}):
        with T.sblock('b2'):
            v5, v6, v7, v8 = T.axis.remap('SSSS', [v1, v2, v3, v4])
            T.reads(v5[v5, v6, v7, v8])
"""
    shapes = (1, side, side, cin), (kernel, kernel, cin, cout)
    flops = 2.0 * side**2 * cin * cout * kernel**2
    return Workload(
        sha256(text), text, "conv2d", "conv2d_relu", family, shapes, ("float32",) * 2, flops, 1e3
    )


@pytest.fixture
def registry(registry):
    registry.add_target(ELSEWHERE)
    registry.add_target(LIKE)
    return registry


def key(workload, target=TARGET):
    return TaskKey(workload.key, target.fingerprint)


def known(registry, workload, target=TARGET, tvm=TVM, trials=64, reason="limit", *, model=True):
    """As if a model with it had been tuned here."""
    registry.add_workloads([workload])
    if model:
        registry.add_model(workload.key, "other.onnx", [(key(workload, target), 1)])
    registry.add_batch([], [record(key(workload, target), 1e-3, workload.key, tvm=tvm)])
    end = SearchEnd(key(workload, target), tvm, "ansor", trials, reason, trials, WHEN, SHIPPED)
    registry.add_searches([end])


def near(registry, workload):
    return nearest({key(workload): workload}, registry, TVM, TARGET).get(key(workload), [])


def planned(registry, *workloads, reuse="exact", budget=None):
    tasks = [Task(f"task {n}", key(w), w, 1, mod=None) for n, w in enumerate(workloads)]
    request = Request(TARGET, registry.path, budget or Budget(), reuse=reuse)
    ledger = Ledger(registry, request)
    ledger.tvm = TVM
    return make_plan(["model.onnx"], tasks, ledger)


# Distance


def test_the_distance_is_in_doublings_of_the_anchor_blocks_extents():
    assert distance(conv(14, 32, 64), conv(14, 32, 64)) == 0
    assert distance(conv(14, 32, 64), conv(14, 64, 64)) == pytest.approx(1)
    assert distance(conv(14, 32, 64), conv(28, 16, 32)) == pytest.approx(4)
    assert distance(conv(14, 32, 64), conv(14, 32, 48)) == pytest.approx(math.log2(64 / 48))


def test_it_is_the_same_from_both_ends():
    pairs = (conv(14, 32, 64), conv(7, 48, 96, 5)), (conv(9, 4, 8), conv(56, 64, 64))
    assert all(distance(a, b) == pytest.approx(distance(b, a)) for a, b in pairs)


def test_another_stride_or_window_is_farther_than_other_extents():
    one = conv(14, 32, 64)
    assert distance(one, conv(14, 32, 64, stride=2)) == OTHER_WINDOW
    assert distance(one, conv(14, 32, 64, kernel=5)) > OTHER_WINDOW
    assert distance(one, conv(14, 32, 32)) < OTHER_WINDOW


def test_other_families_and_what_is_no_program_are_not_near_at_all():
    one = conv(14, 32, 64)
    assert distance(one, conv(14, 32, 64, family="another")) == math.inf
    assert distance(one, replace(one, text="conv2d program 7")) == math.inf
    assert distance(replace(one, text="x"), replace(one, text="y")) == math.inf


# The registry


def test_the_nearest_come_first_with_their_traces(registry):
    for cout in (32, 16, 8, 128):
        known(registry, conv(14, 32, cout))
    found = near(registry, conv(14, 32, 60))
    assert [one.workload.shapes[1][-1] for one in found] == [32, 128, 16]
    assert len(found) == NEAREST
    assert all(one.traces == (one.workload.key,) for one in found)


def test_too_far_is_no_neighbour(registry):
    known(registry, conv(14, 4, 8))
    assert distance(conv(14, 4, 8), conv(56, 64, 512)) > FARTHEST
    assert near(registry, conv(56, 64, 512)) == []


def test_it_is_not_its_own_neighbour(registry):
    known(registry, conv(14, 32, 64))
    assert near(registry, conv(14, 32, 64)) == []


@pytest.mark.parametrize(
    "other",
    [
        {"target": ELSEWHERE},
        {"tvm": "0.26.0"},
        {"trials": 1},  # only looked at
        {"model": False},  # others' word for what the text is
    ],
)
def test_what_was_not_tuned_here_for_this_target_is_none(registry, other):
    known(registry, conv(14, 32, 32), **other)
    assert near(registry, conv(14, 32, 64)) == []
    assert planned(registry, conv(14, 32, 64)).count("near") == 0


def test_what_others_tuned_for_the_same_model_is_one(registry):
    known(registry, conv(14, 32, 32), trials=0, reason="locked")
    assert len(near(registry, conv(14, 32, 64))) == 1


@pytest.mark.parametrize("model", [True, False])
def test_the_same_program_on_a_machine_like_this_one_is_near(registry, model):
    known(registry, conv(14, 32, 64), LIKE, model=model)
    (found,) = near(registry, conv(14, 32, 64))
    assert (found.workload, found.distance) == (conv(14, 32, 64), OTHER_MACHINE)
    assert (found.machine, found.traces) == (LIKE, (found.workload.key,))
    known(registry, conv(14, 32, 32))
    known(registry, conv(14, 32, 48))
    known(registry, conv(14, 32, 32), LIKE)
    several = near(registry, conv(14, 32, 64))
    assert [one.machine for one in several] == [None, LIKE, None]
    assert [one.workload.shapes[1][-1] for one in several[:2]] == [48, 64]


def test_what_was_tuned_for_other_instructions_is_not_near(registry):
    for other in (ELSEWHERE, replace(TARGET, cpu="cortex-a72"), replace(TARGET, features=("+fp",))):
        registry.add_target(other)
        known(registry, conv(14, 32, 64), other)
    assert near(registry, conv(14, 32, 64)) == []


# The plan


def test_a_plan_says_on_which_machine_a_neighbour_was_tuned(registry):
    known(registry, conv(14, 32, 64), LIKE)
    made = planned(registry, conv(14, 32, 64))
    assert (made.count("near"), made.trials) == (1, Budget().per_task)
    assert details(made)[2] == "  of a machine with 2 cores and caches of 32, 1024, 0 KiB"
    (row,) = Plan.of(made).tasks
    assert [near.target for near in row.neighbours] == [LIKE.fingerprint]


def test_a_miss_with_a_neighbour_is_near(registry):
    known(registry, conv(14, 32, 32))
    made = planned(registry, conv(14, 32, 64), conv(14, 32, 32), conv(9, 32, 64, family="odd"))
    found = {row.task.name: row.status for row in made.rows}
    assert found == {"task 0": "near", "task 1": "hit", "task 2": "miss"}
    assert made.trials == 2 * Budget().per_task
    answer = Plan.of(made)
    assert (answer.hits, answer.near, answer.misses, answer.skipped) == (1, 1, 1, 0)
    by_name = {row.name: row.neighbours for row in answer.tasks}
    assert by_name["task 1"] == by_name["task 2"] == []
    (neighbour,) = by_name["task 0"]
    assert (neighbour.key, neighbour.distance) == (conv(14, 32, 32).key, 1)


def test_near_tasks_cost_no_trials_where_near_is_good_enough(registry):
    known(registry, conv(14, 32, 32))
    made = planned(registry, conv(14, 32, 64), conv(7, 8, 8, family="odd"), reuse="near")
    assert (made.count("near"), made.count("miss")) == (1, 1)
    assert made.trials == Budget().per_task


def test_what_does_not_matter_is_skipped_however_near(registry):
    known(registry, conv(14, 32, 32))
    made = planned(registry, conv(14, 32, 64), budget=Budget(min_impact=1.1))
    assert (made.count("near"), made.count("skip")) == (0, 1)


def test_what_was_served_once_is_served_and_still_to_be_tuned_by_others(registry):
    one = conv(14, 32, 64)
    known(registry, conv(14, 32, 32))
    known(registry, one)
    assert planned(registry, one).count("hit") == 1
    two = conv(14, 32, 48)
    registry.add_workloads([two])
    registry.add_batch([], [record(key(two), 1e-3, "[]")])
    registry.add_searches([SearchEnd(key(two), TVM, "near", 1, SERVED, 0, WHEN, SHIPPED)])
    assert planned(registry, two, reuse="near").count("hit") == 1
    made = planned(registry, two)
    assert (made.count("miss"), made.trials) == (1, Budget().per_task)
    assert near(registry, conv(14, 32, 47))[0].workload == one


def test_the_words_say_which_and_how_far(registry):
    known(registry, conv(14, 32, 32))
    made = planned(registry, conv(14, 32, 64), conv(14, 8, 8, family="odd"))
    assert [line.split()[:2] for line, _ in outcomes(made)] == [["near", "1"], ["new", "1"]]
    assert made.trials == 128
    first, second = details(made)
    assert first.startswith("conv2d_relu 3x3x32x64 (")
    assert second == "  is near conv2d_relu 3x3x32x32, at 1.0"
    (alone,) = outcomes(planned(registry, conv(14, 8, 8, family="odd")))
    assert alone[0].startswith("new")
