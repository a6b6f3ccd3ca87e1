"""What a build would do: tasks held against the registry."""

from dataclasses import replace

import pytest
from helpers.registry_samples import TARGET, TVM, key, measurement, record, workload

from ansor_deploy.cli.plan import Plan
from ansor_deploy.errors import UsageError
from ansor_deploy.model.tasks import Task
from ansor_deploy.registry.record import SearchEnd
from ansor_deploy.request import EFFORTS, Budget, Request
from ansor_deploy.space.rule_files import rules_digest
from ansor_deploy.tune.budget_end import budget_reason
from ansor_deploy.tune.ledger import Ledger
from ansor_deploy.tune.plan import SECONDS_PER_TRIAL, make_plan
from ansor_deploy.views.plan import stale_lines

WHEN = "2026-01-31T12:00:00Z"
SHIPPED = rules_digest([], "llvm")


@pytest.fixture
def registry(registry):
    registry.add_workloads([workload(number) for number in range(4)])
    return registry


def task(number, weight=1):
    return Task(f"task {number}", key(number), workload(number), weight, mod=None)


def ledger(registry, request):
    made = Ledger(registry, request)
    made.tvm = TVM
    return made


def plan(registry, *tasks, budget=None, **asked):
    request = Request(TARGET, registry.path, budget or Budget(), **asked)
    return make_plan(["model.onnx"], tasks, ledger(registry, request))


def end(number, trials, **changes):
    made = SearchEnd(key(number), TVM, "ansor", trials, "limit", trials, WHEN, SHIPPED)
    return replace(made, **changes)


def tuned(registry, number, seconds, trials=64):
    registry.add_batch([], [record(key(number), seconds)])
    registry.add_searches([end(number, trials)])


def statuses(plan):
    return {row.task.name: row.status for row in plan.rows}


def test_an_unknown_task_is_a_miss(registry):
    made = plan(registry, task(0))
    assert statuses(made) == {"task 0": "miss"}
    assert made.rows[0].trials == Budget().per_task


def test_a_task_whose_search_has_ended_is_a_hit(registry):
    tuned(registry, 0, 1e-3)
    (row,) = plan(registry, task(0)).rows
    assert (row.status, row.trials, row.latency) == ("hit", 0, 1e-3)
    assert row.record is not None


def test_a_search_under_a_smaller_budget_is_a_miss(registry):
    tuned(registry, 0, 1e-3, trials=16)
    assert statuses(plan(registry, task(0))) == {"task 0": "miss"}
    assert statuses(plan(registry, task(0), budget=Budget(per_task=16))) == {"task 0": "hit"}


def reasons(plan):
    return {row.task.name: row.reason for row in plan.rows if row.reason}


def test_a_miss_says_why(registry):
    tuned(registry, 0, 1e-3)
    registry.add_batch([], [record(key(1), 1e-3)])
    made = plan(registry, task(0), task(1), task(2))
    assert reasons(made) == {"task 1": "not finished", "task 2": "never tuned"}
    assert {row.name: row.reason for row in Plan.of(made).tasks}["task 0"] == ""


def test_what_a_quick_search_left_is_tried_by_a_thorough_one(registry):
    registry.add_batch([], [record(key(0), 1e-3)])
    registry.add_searches([end(0, 12, reason="exhausted", enough_for=16)])
    assert statuses(plan(registry, task(0), budget=EFFORTS["quick"])) == {"task 0": "hit"}
    made = plan(registry, task(0), budget=EFFORTS["thorough"])
    assert reasons(made) == {"task 0": "more effort"}


@pytest.mark.parametrize(
    ("spent", "asked", "status"),
    [
        (Budget(seconds=15.0), Budget(seconds=15.0), "hit"),  # an unchanged build does nothing
        (Budget(seconds=15.0), Budget(seconds=10.0, trials=5), "hit"),
        (Budget(seconds=15.0), Budget(seconds=60.0), "miss"),
        (Budget(seconds=15.0), Budget(trials=200), "miss"),
        (Budget(seconds=15.0), Budget(), "miss"),
        (Budget(trials=10), Budget(trials=10), "hit"),
        (Budget(trials=10), Budget(trials=0), "hit"),
        (Budget(trials=10), Budget(trials=11), "miss"),
        (Budget(trials=10), Budget(seconds=1.0), "miss"),
        (Budget(trials=10, seconds=15.0), Budget(trials=9, seconds=20.0), "miss"),
    ],
)
def test_what_a_budget_ended_is_open_again_for_a_larger_one(registry, spent, asked, status):
    tuned(registry, 1, 1e-3)
    registry.add_batch([], [record(key(0), 1e-3)])
    ledger(registry, Request(TARGET, registry.path, spent)).add_ends({key(0): budget_reason(spent)})
    made = plan(registry, task(0), task(1), budget=asked)
    assert statuses(made) == {"task 0": status, "task 1": "hit"}
    assert reasons(made) == ({} if status == "hit" else {"task 0": "more budget"})


def test_a_search_under_other_rules_is_not_finished(registry, tmp_path):
    rule = tmp_path / "mine.py"
    rule.write_text("NAME = 'mine'")
    digest = rules_digest([rule], "llvm")
    registry.add_batch([measurement(key(0)) for _ in range(64)], [record(key(0), 1e-3)])
    registry.add_searches([end(0, 64)])
    assert plan(registry, task(0)).count("hit") == 1
    (row,) = plan(registry, task(0), rules=(rule,)).rows
    assert (row.status, row.reason, row.trials) == ("miss", "rules changed", 64)
    registry.add_searches([end(0, 128, rules=digest)])
    assert plan(registry, task(0), rules=(rule,)).count("hit") == 1


def test_trials_under_other_rules_do_not_count(registry, tmp_path):
    registry.add_batch([measurement(key(0)) for _ in range(70)], [record(key(0), 1e-3)])
    registry.add_searches([end(0, 64, rules="0" * 64)])
    (row,) = plan(registry, task(0)).rows
    assert (row.reason, row.trials) == ("rules changed", 64 - 6)


def test_another_search_is_not_finished(registry):
    tuned(registry, 0, 1e-3)
    made = plan(registry, task(0), search="metaschedule")
    assert reasons(made) == {"task 0": "another search"}


def test_records_of_a_lock_are_finished(registry):
    kept = record(key(0), 1e-3)
    ledger(registry, Request(TARGET, registry.path)).add_locked([kept])
    assert plan(registry, task(0)).count("hit") == 1
    assert plan(registry, task(0), search="metaschedule").count("hit") == 1


def test_a_lock_does_not_hide_that_rules_have_changed(registry, tmp_path):
    kept, rule = record(key(0), 1e-3), tmp_path / "mine.py"
    rule.write_text("NAME = 'mine'")
    for rules in ((), (rule,)):  # the second build finds the lock's record here already
        ledger(registry, Request(TARGET, registry.path, rules=rules)).add_locked([kept])
    assert reasons(plan(registry, task(0), rules=(rule,))) == {"task 0": "rules changed"}


@pytest.mark.parametrize("word", ["all", "task 1", key(1).workload[:8]])
def test_tasks_are_tuned_again_where_that_is_asked_for(registry, word):
    tuned(registry, 0, 1e-3)
    tuned(registry, 1, 1e-9)  # too fast to matter, but asked for
    registry.add_batch([measurement(key(1)) for _ in range(64)], [])
    made = plan(registry, task(0), task(1), retune=(word,))
    row = next(row for row in made.rows if row.task.name == "task 1")
    assert (row.status, row.reason, row.trials) == ("miss", "asked again", 64)
    assert made.count("miss") == (2 if word == "all" else 1)


def test_what_is_tuned_again_must_be_there(registry):
    with pytest.raises(UsageError, match="no task is called conv9"):
        plan(registry, task(0), retune=("conv9",))


def test_a_record_without_an_ended_search_is_a_miss_that_keeps_its_latency(registry):
    registry.add_batch([], [record(key(0), 2e-3)])
    (row,) = plan(registry, task(0)).rows
    assert (row.status, row.latency) == ("miss", 2e-3)


def test_an_ended_search_without_a_record_is_a_miss(registry):
    registry.add_searches([end(0, 64)])
    assert statuses(plan(registry, task(0))) == {"task 0": "miss"}


def test_records_of_another_compiler_are_none(registry):
    registry.add_batch([], [record(key(0), 1e-3, tvm="0.26.0")])
    registry.add_searches([end(0, 64)])
    assert plan(registry, task(0)).rows[0].record is None


def test_misses_with_records_of_another_compiler_are_told(registry):
    old = [record(key(n), 1e-3, tvm="0.26.0") for n in range(3)]
    registry.add_batch([], old)
    tuned(registry, 0, 1e-3)
    registry.add_batch([measurement(key(1))], [])  # its trace was tried with this version
    made = plan(registry, *map(task, range(4)))
    assert statuses(made)["task 2"] == "miss"
    assert made.stale == Plan.of(made).stale == 1
    assert "registry revalidate model.onnx" in "".join(stale_lines(made))
    assert stale_lines(plan(registry, task(3))) == []


def test_a_task_that_does_not_matter_is_skipped(registry):
    tuned(registry, 0, 1.0)
    registry.add_batch([], [record(key(1), 1e-3)])
    made = plan(registry, task(0), task(1))
    assert statuses(made) == {"task 0": "hit", "task 1": "skip"}
    assert made.trials == 0


def test_a_skipped_task_stays_skipped_when_the_others_are_faster_than_thought(registry):
    budget = Budget(min_impact=0.4)
    tasks = (task(0, weight=2), task(1))
    assert statuses(plan(registry, *tasks, budget=budget)) == {"task 0": "miss", "task 1": "skip"}
    tuned(registry, 0, task(0).roofline(TARGET) / 100)
    assert statuses(plan(registry, *tasks, budget=budget)) == {"task 0": "hit", "task 1": "skip"}


def test_its_weight_makes_it_matter(registry):
    tuned(registry, 0, 1.0)
    registry.add_batch([], [record(key(1), 1e-3)])
    assert statuses(plan(registry, task(0), task(1, weight=100)))["task 1"] == "miss"


def test_a_thorough_effort_skips_nothing(registry):
    tuned(registry, 0, 1.0, trials=512)
    registry.add_batch([], [record(key(1), 1e-6)])
    made = plan(registry, task(0), task(1), budget=EFFORTS["thorough"])
    assert statuses(made) == {"task 0": "hit", "task 1": "miss"}


def test_impacts_are_shares_of_the_whole_and_rows_are_sorted_by_them(registry):
    for number, seconds in enumerate((1.0, 3.0, 2.0)):
        tuned(registry, number, seconds)
    made = plan(registry, task(0, weight=3), task(1), task(2))
    assert [row.impact for row in made.rows] == pytest.approx([3 / 8, 3 / 8, 2 / 8])
    assert made.rows[-1].task.name == "task 2"
    assert made.latency == pytest.approx(8.0)


def test_without_a_record_the_roofline_stands_in(registry):
    (row,) = plan(registry, task(0)).rows
    assert row.latency == task(0).roofline(TARGET)
    assert row.latency == pytest.approx(2e9 / 38.4e9)


def test_trials_spent_before_are_not_spent_again(registry):
    registry.add_batch([measurement(key(0)) for _ in range(10)], [])
    assert plan(registry, task(0)).rows[0].trials == Budget().per_task - 10


def test_the_budget_limits_the_trials_and_the_seconds(registry):
    tasks = task(0), task(1)
    free = plan(registry, *tasks)
    assert (free.trials, free.seconds) == (128, 128 * SECONDS_PER_TRIAL)
    assert plan(registry, *tasks, budget=Budget(trials=20)).trials == 20
    assert plan(registry, *tasks, budget=Budget(trials=0)).seconds == 0
    assert plan(registry, *tasks, budget=Budget(seconds=3.0)).seconds == 3.0


def test_a_small_space_is_a_small_price(registry):
    registry.add_batch([measurement(key(0)) for _ in range(10)], [])
    request = Request(TARGET, registry.path)
    spaces = {"task 0": 16, "task 1": 1000}
    sizes = lambda one, enough: spaces[one.name]  # noqa: E731
    made = make_plan(["m.onnx"], [task(0), task(1)], ledger(registry, request), sizes)
    assert {row.task.name: row.trials for row in made.rows} == {"task 0": 6, "task 1": 64}
    assert (made.trials, made.seconds) == (70, 70 * SECONDS_PER_TRIAL)


def test_a_forecast_is_on_one_basis(registry):
    made = plan(registry, task(0, weight=2), task(1))
    assert made.forecast({}) == pytest.approx(made.latency)  # nothing but the roofline is known
    slow = 3 * task(0).roofline(TARGET)
    assert made.forecast({key(0): slow}) == pytest.approx(3 * made.latency)
    tuned(registry, 0, slow)
    assert plan(registry, task(0, weight=2), task(1)).latency == pytest.approx(3 * made.latency)


def test_the_price_of_a_trial_is_learnt(registry):
    registry.add_tuning(TARGET.fingerprint, "metaschedule", 10, 20.0, WHEN)
    assert plan(registry, task(0)).seconds == pytest.approx(64 * 2.0)


def test_the_json_tells_the_same(registry):
    tuned(registry, 0, 1e-3)
    told = Plan.of(plan(registry, task(0), task(1)))
    assert (told.hits, told.misses, told.skipped) == (1, 1, 0)
    by_name = {row.name: row for row in told.tasks}
    assert by_name["task 0"].latency_ms == pytest.approx(1.0)
    assert by_name["task 1"].record is None


def test_no_task_is_a_plan_of_nothing(registry):
    made = plan(registry)
    assert (made.rows, made.trials, made.seconds, made.latency) == ((), 0, 0, 0)


def test_each_model_has_its_own_latency(registry):
    for number, seconds in enumerate((1e-3, 4e-3)):
        tuned(registry, number, seconds)
    tasks = [replace(task(0, weight=3), weights=(1, 2)), replace(task(1), weights=(0, 1))]
    request = Request(TARGET, registry.path, Budget())
    made = make_plan(["a.onnx", "b.onnx"], tasks, ledger(registry, request))
    assert made.latencies == pytest.approx((1e-3, 6e-3))
    assert made.latency == pytest.approx(sum(made.latencies))
