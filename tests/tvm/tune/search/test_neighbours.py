"""Schedules of one size on programs of another: real operators, built and run."""

import random
from dataclasses import replace

import pytest
from helpers.built import HOST, with_vectors
from helpers.programs import conv2d, depthwise, layer_norm, matmul, program, softmax
from tvm import te, topi

from ansor_deploy._tvm import VERSION, structural_walk, tirx
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.registry.record import Measurement, Provenance, Record, SearchEnd
from ansor_deploy.registry.store import Registry
from ansor_deploy.request import Request
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Decision, Guess, Question
from ansor_deploy.space.rule import rule_set
from ansor_deploy.space.tiles import Tiles
from ansor_deploy.space.trace import dump, replay
from ansor_deploy.tune.plan import make_plan
from ansor_deploy.tune.search import open_search
from ansor_deploy.tune.search.context import open_context
from ansor_deploy.tune.search.evolution_options import EvolutionOptions
from ansor_deploy.tune.search.features import decode_choices
from ansor_deploy.tune.search.genome import Genome, build, recover, templates
from ansor_deploy.tune.search.neighbours import Neighbour, nearest
from ansor_deploy.tune.search.refit import Refitted, refit
from ansor_deploy.tune.search.variation import resample
from ansor_deploy.tune.sources import try_out
from ansor_deploy.tune.sources.near import Near
from ansor_deploy.tune.standing import SERVED
from ansor_deploy.tune.workspace import Workspace
from ansor_deploy.views.plain import QuietReport

RULES = rule_set((), HOST.kind)
BATCH = 16
WHEN = "2026-01-31T12:00:00Z"
PROOF = {"oracle": "default", "seed": 0, "max_abs_err": 0.0, "max_rel_err": 0.0}


def conv_batch(batch, side, cin, cout, kernel=3, stride=1):
    x, w = (te.placeholder(s, name="x") for s in ((batch, side, side, cin), (kernel,) * 2))
    w = te.placeholder((kernel, kernel, cin, cout), name="x")
    y = topi.nn.relu(topi.nn.conv2d_nhwc(x, w, stride, 1, 1))
    return program([x, w], y, free=(1,))


def strided(side, cin, cout):
    """A convolution without Winograd's programs, which take as long as all others together."""
    return conv2d(side, cin, cout, stride=2)


def task(mod, target=HOST):
    return task_of(mod["main"], "task", target)


def default_trace(made):
    return dump(default_schedule(made.mod, HOST).trace)


def drawn(made, count=4, seed=0, target=HOST, wanted=None):
    """Traces of programs with random decisions, of every sketch; the first so many unlike ones."""
    sketches, rng = derive(made.mod, target, RULES).sketches, random.Random(seed)
    found = []
    for one in templates(sketches) * count:
        program = build(sketches, Genome(one.sketch, resample(one.decisions, rng)), Guess())
        trace = program and dump(program[1].sch.trace)
        if trace and not (wanted and trace in found):
            found.append(trace)
        if len(found) == wanted:
            break
    return found


def refitted(old, new, traces):
    sketches = derive(new.mod, HOST, RULES).sketches
    return list(refit(sketches, Neighbour(old.workload, 0.0, tuple(traces)), HOST, RULES))


PAIRS = {
    "conv of another size": lambda: (conv2d(14, 16, 32), conv2d(28, 16, 32)),
    "conv of prime channels": lambda: (strided(14, 16, 32), strided(13, 7, 37)),
    "conv of another kernel": lambda: (conv2d(14, 8, 16, 3, 2, 1), conv2d(15, 8, 16, 5, 2, 1)),
    "conv of another batch": lambda: tuple(conv_batch(n, 10, 8, 16, 3, 2) for n in (1, 4)),
    "depthwise": lambda: (depthwise(14, 32), depthwise(7, 48)),
    "matmul": lambda: (matmul(48, 64, 96), matmul(100, 48, 80)),
    "matmul to a row": lambda: (matmul(128, 64, 96), matmul(1, 64, 200)),
    "softmax": lambda: (softmax(12, 256), softmax(7, 90)),
    "layer norm": lambda: (layer_norm(6, 256), layer_norm(20, 96)),
}


@pytest.fixture(scope="module")
def measurer():
    with Measurer(HOST) as opened:
        yield opened


@pytest.mark.parametrize("name", list(PAIRS))
def test_every_refitted_program_is_one_of_the_task_and_computes_the_same(name, measurer):
    old, new = map(task, PAIRS[name]())
    assert old.workload.family == new.workload.family
    assert old.key != new.key
    traces = drawn(old, 1)
    made = refitted(old, new, traces)
    assert len(made) == len(traces) > 0
    sketches = derive(new.mod, HOST, RULES).sketches
    for genome, candidate in made:
        trace = dump(candidate.sch.trace)
        assert replay(new.mod, trace)
        assert recover(sketches, trace)[0] == genome
    ran = measurer.measure(new, list(dict.fromkeys(dump(c.sch.trace) for _, c in made)))
    assert [outcome.message for outcome in ran if outcome.error] == []
    assert all(outcome.proof for outcome in ran)


def kinds(mod):
    """Which kinds of loops a program has: parallel, vectors, written out."""
    found = set()
    structural_walk(mod["main"].body, (tirx.For, lambda loop: found.add(int(loop.kind))))
    return found - {int(tirx.ForKind.SERIAL)}


@pytest.mark.parametrize("name", list(PAIRS))
def test_it_has_all_that_the_default_schedule_has(name):
    old, new = map(task, PAIRS[name]())
    ((_, candidate),) = refitted(old, new, [default_trace(old)])
    default = kinds(default_schedule(new.mod, HOST).mod)
    assert int(tirx.ForKind.PARALLEL) in default
    assert kinds(candidate.sch.mod) >= default


def test_the_same_sizes_get_back_the_same_program():
    old = task(conv2d(14, 16, 32))
    traces = drawn(old, 1)
    assert [dump(candidate.sch.trace) for _, candidate in refitted(old, old, traces)] == traces


def test_refitting_is_deterministic():
    old, new = task(strided(14, 16, 32)), task(strided(28, 24, 48))
    traces = drawn(old, 1)
    first, second = (refitted(old, new, traces) for _ in range(2))
    assert [genome for genome, _ in first] == [genome for genome, _ in second]


def test_the_tile_stays_where_the_sizes_allow():
    old, new = task(matmul(96, 64, 128)), task(matmul(192, 64, 256))
    traces = drawn(old)
    tiles = [[option(c, old) for _, c in refitted(old, old, traces)]]
    tiles += [[option(c, new) for _, c in refitted(old, new, traces)]]
    assert tiles[0] == tiles[1]
    assert len({*tiles[0]} - {None}) > 1


def option(candidate, made):
    """The register tile that a program of a task has, or None."""
    assert candidate.sketch.mod is made.mod
    found = [one.option for one in candidate.decisions if one.question.about == "register"]
    return found[0] if found else None


def test_other_searches_traces_and_other_rules_are_left_out():
    old, new = task(strided(14, 16, 32)), task(strided(28, 16, 32))
    assert refitted(old, new, ["[[],[]]", "nonsense"]) == []
    sketches = derive(new.mod, HOST, [r for r in RULES if r.name != "always-inline"]).sketches
    neighbour = Neighbour(old.workload, 0.0, tuple(drawn(old, wanted=1)))
    assert list(refit(sketches, neighbour, HOST, RULES)) == []


# How an answer is carried over


def answered(value, about, options, guess=0, asked=None):
    """What becomes of an answer to a question about `asked`, where now another is asked."""
    then = Decision(Question(asked or about, "b0", (value,)), 0)
    now = Question(about, "b0", options, guess)
    return options[Refitted([then]).answer(now)]


def answered_tile(value, extent, parts, limit=16):
    tiles = Tiles(extent, parts, limit)
    return answered(value, "tile", tiles, tiles.index([extent, *[1] * (parts - 1)]))


@pytest.mark.parametrize(
    ("then", "extent", "now"),
    [
        ((7, 2, 1, 8), 112, (7, 2, 1, 8)),
        ((7, 2, 1, 8), 224, (14, 2, 1, 8)),  # the outermost takes the rest
        ((7, 2, 1, 8), 56, (7, 1, 1, 8)),  # no even number is left
        ((4, 1, 1, 16), 36, (3, 1, 1, 12)),  # 18 is nearer, and more than the innermost may have
        ((1, 1, 1, 1), 7, (7, 1, 1, 1)),
        ((2, 3, 5, 7), 13, (1, 1, 1, 13)),
    ],
)
def test_each_factor_becomes_the_nearest_divisor(then, extent, now):
    assert answered_tile(then, extent, 4) == now


def test_options_are_known_by_what_they_are_and_not_by_their_place():
    assert answered(64, "unroll", (0, 16, 64)) == 64
    assert answered(48, "unroll", (0, 16, 64)) == 64
    assert answered("task", "location", ("root", "task")) == "task"
    tiles = ((1, 7, 32), (1, 14, 32), (2, 7, 16))
    assert answered((1, 12, 32), "register", tiles) == (1, 14, 32)


def test_what_has_no_like_is_the_guess():
    assert answered("elsewhere", "location", ("root", "task"), 1) == "task"
    assert answered(3, "parallel", (1, 2, 3), 1, asked="unroll") == 2
    assert answered_tile((4, 4), 32, 3) == (32, 1, 1)
    tiles = Tiles(32, 2, 16)
    again = Refitted([Decision(Question("tile", "b0", ((4, 4),)), 0)])
    asked = [Question("tile", "b0", tiles, tiles.index((32, 1))) for _ in range(2)]
    assert [tiles[again.answer(one)] for one in asked] == [(8, 4), (32, 1)]


# From the registry


@pytest.fixture
def registry(tmp_path):
    with Registry.open(tmp_path / "registry.db") as opened:
        opened.add_target(HOST)
        yield opened


def tuned(registry, made, traces, target=HOST):
    """As if a search of the task had ended with these traces, the first the fastest."""
    where = Provenance("0.1", VERSION, "ansor", "here", 0, WHEN)
    registry.add_target(target)
    registry.add_workloads([made.workload])
    registry.add_model(made.workload.key, "other.onnx", [(made.key, 1)])
    times = [(1e-3 * (1 + at),) for at in range(len(traces))]
    pairs = list(zip(traces, times, strict=True))
    registry.add_batch(
        [Measurement(made.key, trace, t, "", "", where) for trace, t in pairs],
        [Record(made.key, trace, t, PROOF, where) for trace, t in pairs],
    )
    registry.add_searches([SearchEnd(made.key, VERSION, "ansor", 64, "limit", 64, WHEN)])


def neighbours(registry, made):
    return nearest({made.key: made.workload}, registry, VERSION, HOST).get(made.key, [])


def test_neighbours_are_of_the_same_family_and_target(registry):
    near, other = task(strided(28, 16, 32)), task(depthwise(14, 32))
    narrow = task(strided(7, 16, 32), with_vectors(16))
    tuned(registry, near, drawn(near, wanted=1))
    tuned(registry, other, drawn(other, wanted=1))
    tuned(registry, narrow, drawn(narrow, wanted=1), with_vectors(16))
    (found,) = neighbours(registry, task(strided(14, 16, 32)))
    assert (found.workload, found.distance) == (near.workload, 2.0)
    assert neighbours(registry, task(matmul(8, 8, 8))) == []


def opened(registry):
    """What a search needs, of one that makes few programs."""
    few = EvolutionOptions(pool=64, breeding=1, programs=2, population=16)
    return replace(open_context(registry, HOST, RULES, 0), options=few)


def proposed(registry, made, count=BATCH):
    return open_search("ansor", made, [], opened(registry)).propose(count)


def test_a_search_starts_with_what_its_neighbours_ended_with(registry):
    old, new = task(matmul(28, 16, 32)), task(matmul(14, 16, 32))
    before = proposed(registry, new)
    registry.add_workloads([new.workload])
    best = drawn(old, wanted=2)
    tuned(registry, old, best)
    made = [dump(candidate.sch.trace) for _, candidate in refitted(old, new, best)]
    batch = proposed(registry, new)
    assert batch[: len(set(made))] == list(dict.fromkeys(made))
    assert len(batch) == len(set(batch)) == BATCH
    assert batch == proposed(registry, new)
    assert batch != before
    assert proposed(registry, new, 1) == batch[:1]


def test_a_search_starts_with_what_a_machine_with_other_cores_ended_with(registry):
    like = replace(HOST, name="like", cores=2 * HOST.cores + 1, l2_bytes=2 * HOST.l2_bytes)
    old, new = task(matmul(16, 32, 24), like), task(matmul(16, 32, 24))
    best = drawn(old, wanted=3, target=like)
    tuned(registry, old, best, like)
    (found,) = neighbours(registry, new)
    assert (found.machine, found.workload, found.traces) == (like, new.workload, tuple(best))
    sketches = derive(new.mod, HOST, RULES).sketches
    made = [dump(program.sch.trace) for _, program in refit(sketches, found, HOST, RULES)]
    assert len(made) == len(best)
    assert proposed(registry, new)[: len(set(made))] == list(dict.fromkeys(made))


def test_the_best_of_every_neighbour_comes_before_the_second_best_of_any(registry):
    new = task(matmul(14, 16, 32))
    near, far = task(matmul(28, 16, 32)), task(matmul(56, 16, 32))
    best = {}
    for at, old in enumerate((near, far)):
        best[old.key] = drawn(old, wanted=2, seed=at)
        tuned(registry, old, best[old.key])
    registry.add_workloads([new.workload])
    made = [
        dump(candidate.sch.trace)
        for rank in (0, 1)
        for old in (near, far)
        for _, candidate in refitted(old, new, best[old.key][rank : rank + 1])
    ]
    assert len(set(made)) > 2
    assert proposed(registry, new)[: len(set(made))] == list(dict.fromkeys(made))


def test_a_task_that_was_searched_goes_on_where_it_was(registry):
    old, new = task(matmul(28, 16, 32)), task(matmul(14, 16, 32))
    tuned(registry, new, drawn(new, wanted=3))
    known = list(registry.measurements(HOST.fingerprint, new.key))
    assert len(known) == 3
    before = open_search("ansor", new, known, opened(registry)).propose(BATCH)
    tuned(registry, old, drawn(old, wanted=1, seed=5))
    after = open_search("ansor", new, known, opened(registry)).propose(BATCH)
    assert before == after


def learnt(registry, made, count=16):
    """As if some programs had been measured, of which those with wide tiles were twice as fast."""
    tuned(registry, made, [default_trace(made)])
    context = opened(registry)
    where = Provenance("0.1", VERSION, "ansor", "here", 0, WHEN)
    for trace in open_search("ansor", made, [], context).propose(count):
        features = context.features(made, trace)
        seconds = (1e-3 * (2 - is_wide(features)),)
        registry.add_batch([Measurement(made.key, trace, seconds, "", "", where, features)], [])


def is_wide(features):
    *_, rows, columns = dict(decode_choices(features)).get("register", (1, 1))
    return columns > rows


def test_what_was_measured_of_other_sizes_ranks_a_tasks_first_programs(registry):
    new = task(matmul(14, 16, 32))
    registry.add_workloads([new.workload])
    for size in (12, 28, 56):
        learnt(registry, task(matmul(size, 16, 32)))
    context = opened(registry)
    batch = open_search("ansor", new, [], context).propose(BATCH)
    wide = [is_wide(context.features(new, trace)) for trace in batch]
    assert 2 <= sum(wide) < BATCH
    assert all(wide[: sum(wide) - 1])  # one in twenty is chosen by chance


# Served


@pytest.fixture
def near_row(registry):
    old, new = task(matmul(7, 32, 32)), task(matmul(7, 16, 32))
    registry.add_workloads([new.workload])
    tuned(registry, old, drawn(old, wanted=3))
    request = Request(HOST, registry.path, reuse="near")
    work = Workspace(request, QuietReport(), registry)
    (row,) = make_plan(["m.onnx"], [new], work.ledger).rows
    assert (row.status, row.trials) == ("near", 0)
    return row, work


@pytest.mark.alone
def test_a_near_task_is_served_by_what_is_checked_and_faster(registry, near_row, measurer):
    row, work = near_row
    assert try_out(Near(row.task, row.neighbours, work), measurer)
    record = registry.best([row.task.key], VERSION)[row.task.key]
    assert record.proof["oracle"] == "default"
    made = list(registry.measurements(HOST.fingerprint, row.task.key))
    assert {one.provenance.search for one in made} <= {"default", "near"}
    assert made[0].trace == default_trace(row.task)
    assert record.trace in {one.trace for one in made}
    assert all(one.features for one in made)
    assert [end.reason for end in registry.ends(row.task.key)] == [SERVED]
    again = make_plan(["m.onnx"], [row.task], work.ledger)
    assert again.count("hit") == 1


def test_where_nothing_fits_the_default_schedule_serves(registry, measurer):
    old, new = task(matmul(64, 32, 48)), task(matmul(32, 32, 48))
    registry.add_workloads([new.workload])
    tuned(registry, old, ["[[],[]]"])
    request = Request(HOST, registry.path, reuse="near")
    work = Workspace(request, QuietReport(), registry)
    (row,) = make_plan(["m.onnx"], [new], work.ledger).rows
    assert try_out(Near(row.task, row.neighbours, work), measurer)
    record = registry.best([new.key], VERSION)[new.key]
    assert (record.trace, record.provenance.search) == (default_trace(new), "default")
