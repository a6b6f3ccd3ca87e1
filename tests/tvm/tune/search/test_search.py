"""Our search on real tasks, its measurements replayed: no clock, and the same every time."""

import json
import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import recordings
from helpers.built import HOST
from helpers.programs import PROGRAMS, matmul, softmax

from ansor_deploy.errors import UsageError
from ansor_deploy.measure.outcome import UNMEASURED, Outcome
from ansor_deploy.model.relax.extract import _task
from ansor_deploy.registry.record import Measurement, Provenance
from ansor_deploy.registry.store import Registry
from ansor_deploy.space.canonical_text import canonical_text, parse
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Guess
from ansor_deploy.space.rule import Apply, rule_set, shipped_rules
from ansor_deploy.space.trace import dump, replay
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from ansor_deploy.tune.search import has_first_guess, open_search
from ansor_deploy.tune.search.context import SearchContext, model_path, open_context
from ansor_deploy.tune.search.evolution_options import EvolutionOptions
from ansor_deploy.tune.search.experience import Experience, choices
from ansor_deploy.tune.search.features import Extractor, decode
from ansor_deploy.tune.search.genome import Genome, build, recover, templates
from ansor_deploy.tune.search.variation import resample
from benchmarks.search.replay import ReplayMeasurer

RULES = rule_set((), HOST.kind)
TRACES = Path(__file__).parents[3] / "assets" / "traces.json"
BATCH = 16
# A search that makes few programs: what is tested of it does not hang on how good they are.
FEW = EvolutionOptions(enough=4, pool=24, breeding=1, programs=2, population=8)


def task_of(mod):
    text = canonical_text(mod["main"])
    return _task("task", text, parse(text), 1, HOST)


@pytest.fixture(scope="module")
def task():
    """A product: the programs of a convolution take three times as long to make."""
    return task_of(matmul(48, 64, 96))


def seconds_of(decisions):
    """A made-up landscape over decisions: smooth along some, arbitrary along others."""
    time = 1.0
    for at, decision in enumerate(decisions):
        size = decision.question.size
        if decision.question.about == "tile":
            time *= 1 + sum(abs(math.log2(f) - 1.5) for f in decision.option) / 8
        else:
            time *= 1 + abs(decision.index / max(1, size - 1) - (0.3, 0.7)[at % 2])
    return time * 1e-3


@pytest.fixture(scope="module")
def recording(task):
    """Random programs of the task, with made-up times."""
    sketches = derive(task.mod, HOST, RULES).sketches
    rng, recorded = random.Random(0), {}
    for template in templates(sketches)[:2] * 50:
        decisions = resample(template.decisions, rng)
        made = build(sketches, Genome(template.sketch, decisions), Guess())
        if made:
            trace = dump(made[1].sch.trace)
            recorded[trace] = Outcome(trace, (seconds_of(made[0].decisions),))
    return list(recorded.values())


@pytest.fixture(scope="module")
def measurer(task, recording):
    sketches = derive(task.mod, HOST, RULES).sketches

    def otherwise(task, trace):
        return seconds_of(recover(sketches, trace)[0].decisions)

    return ReplayMeasurer(((task.key.workload, o) for o in recording), otherwise)


def searched(task, measurer, batches=2, seed=0, known=(), context=None, batch=BATCH):
    """The batches that a search proposes, with what the replay answers."""
    search = open_search("ansor", task, known, context or SearchContext(HOST, RULES, seed))
    found = []
    for _ in range(batches):
        outcomes = measurer.measure(task, search.propose(batch))
        search.observe(outcomes)
        found.append(outcomes)
    return found


def measured(task, outcome, features=None):
    made = Provenance("0.1", "0.27", "ansor", "here", 0, "2026-01-31T12:00:00Z")
    error = outcome.error
    return Measurement(task.key, outcome.trace, outcome.seconds, error, error, made, features)


def flat(batches):
    return [outcome for batch in batches for outcome in batch]


@pytest.fixture(scope="module")
def run(task, measurer):
    return searched(task, measurer)


@pytest.fixture(scope="module")
def rows(task, run):
    """The run as a registry keeps it."""
    context = _context()
    return [measured(task, one, context.features(task, one.trace)) for one in flat(run)]


def test_every_proposal_is_a_program_of_the_task(task, run):
    assert [len(batch) for batch in run] == [BATCH] * 2
    assert all(replay(task.mod, outcome.trace) for outcome in flat(run)[::5])


def test_nothing_is_proposed_twice(run):
    traces = [outcome.trace for outcome in flat(run)]
    assert len(set(traces)) == len(traces)


def test_it_is_repeatable_and_another_seed_is_another_search(task, measurer):
    def few(seed):
        context = SearchContext(HOST, RULES, seed, options=FEW)
        return searched(task, measurer, context=context, batch=4)

    assert few(0) == few(0)
    assert few(1)[0] != few(0)[0]


def test_it_finds_better_than_random_in_the_same_trials(task, measurer, recording, run):
    times = sorted(outcome.latency for outcome in recording)
    rng = random.Random(0)
    trials = 2 * BATCH
    chance = np.mean([min(rng.sample(times, trials)) for _ in range(300)])
    runs = [run, searched(task, measurer, seed=1)]
    ours = np.mean([min(one.latency for one in flat(batches)) for batches in runs])
    assert ours < chance


def test_later_batches_are_better_than_the_first(run):
    middle = [np.median([outcome.latency for outcome in batch]) for batch in run]
    assert middle[1] < middle[0]


def test_a_restart_proposes_nothing_that_the_registry_holds(task, measurer, run, rows, tmp_path):
    with Registry.open(tmp_path / "registry.db") as registry:
        registry.add_target(HOST)
        registry.add_workloads([task.workload])
        registry.add_batch(rows, [])
        context = open_context(registry, HOST, RULES, 0)
        assert context.model.trained
        assert len(context.model.samples) == sum(row.features is not None for row in rows)
        known = list(registry.measurements(HOST.fingerprint, task.key))
        assert known == rows
        words = {"known": known, "context": context, "batch": 4}
        again = flat(searched(task, measurer, batches=1, **words))
    assert again
    assert not {o.trace for o in again} & {o.trace for o in flat(run)}


def test_the_model_is_kept_beside_the_registry(task, rows, tmp_path):
    with Registry.open(tmp_path / "registry.db") as registry:
        registry.add_target(HOST)
        registry.add_workloads([task.workload])
        registry.add_batch(rows, [])
        open_context(registry, HOST, RULES, 0).model.save()
        path = model_path(registry.path, HOST)
        assert path.is_file()
        assert path.parent.name == "registry.db.models"
        assert open_context(registry, HOST, RULES, 0).model.trained


def test_what_was_measured_is_recovered_as_decisions(task, run):
    sketches = derive(task.mod, HOST, RULES).sketches
    for outcome in flat(run)[::7]:
        genome, candidate = recover(sketches, outcome.trace)
        assert seconds_of(genome.decisions) == pytest.approx(outcome.latency)
        assert dump(candidate.sch.trace) == outcome.trace


def test_every_structure_of_a_rule_takes_the_decisions_that_it_is_given():
    # Which questions the register tile asks depends on the answers.
    rules = [rule for rule in RULES if rule.name != "register-tile"]
    sketches = derive(matmul(64, 64, 64), HOST, rules).sketches
    rng, built = random.Random(0), 0
    for template in templates(sketches) * 8:
        decisions = resample(template.decisions, rng)
        made = build(sketches, Genome(template.sketch, decisions), Guess())
        built += made is not None
        assert made is None or made[1].decisions == decisions
    assert built > 4 * len(sketches)


def test_a_child_whose_program_decided_otherwise_is_given_up():
    """A register tile of its own leads to other questions than those that it was merged with."""
    found = templates(derive(matmul(64, 64, 64), HOST, RULES).sketches)[0]
    sketches = derive(matmul(64, 64, 64), HOST, RULES).sketches
    genome, program = build(sketches, replace(found, merged=True), Guess())
    assert genome.decisions == program.decisions == found.decisions
    short = Genome(found.sketch, found.decisions[1:], merged=True)
    assert build(sketches, short, Guess()) is None
    assert build(sketches, replace(short, merged=False), Guess()) is not None


@pytest.mark.parametrize("trace", ["", "{}", "[]", "[[],[]]", "[[],[[0,99]]]", "nonsense"])
def test_a_trace_of_no_sketch_is_known_but_not_recovered(task, trace):
    assert recover(derive(task.mod, HOST, RULES).sketches, trace) is None
    search = open_search("ansor", task, [measured(task, Outcome(trace, (1.0,)))], _context())
    assert search.propose(1)


def test_failures_do_not_stop_it(task):
    search = open_search("ansor", task, [], _context())
    for error in ("build", "timeout", "wrong-output"):
        proposed = search.propose(4)
        assert proposed
        search.observe([Outcome(trace, error=error, message="as a test") for trace in proposed])


def test_what_it_did_not_propose_or_was_not_measured_teaches_nothing(task):
    context = _context()
    search = open_search("ansor", task, [], context)
    traces = search.propose(BATCH)
    search.observe([Outcome("[[],[]]", (1.0,))])
    search.observe([Outcome(trace, error=UNMEASURED) for trace in traces])
    assert len(context.model.samples) == 0


def test_a_rule_that_raises_on_some_decisions_costs_only_those(task):
    def apply(state, block, target):
        if state.choose("order", [1, 2, 3, 4]) == 3:
            raise KeyError("a rule of a user's")
        return [state]

    moody = replace(RULES[0], name="moody", applies=lambda *_: Apply(), apply=apply)
    context = SearchContext(HOST, (*[r for r in RULES if r.name != "skip"], moody))
    search = open_search("ansor", task_of(softmax(8, 64)), [], context)
    assert isinstance(search.propose(BATCH), list)


def of_others(count):
    """What was measured of another task: so many programs."""
    return Experience(
        [{"size": float(n)} for n in range(count)], [1e-3 * (1 + n % 5) for n in range(count)]
    )


def test_without_any_sketch_there_is_nothing_to_propose(task):
    for relatives in ([], [of_others(16)]):
        context = SearchContext(HOST, (), relatives=lambda workload, found=relatives: found)
        assert open_search("ansor", task, [], context).propose(BATCH) == []


def test_a_search_has_a_first_guess_once_enough_was_measured_of_relatives(task):
    answers = iter([[of_others(15)], [of_others(15), of_others(1)]])
    context = SearchContext(HOST, RULES, relatives=lambda workload: next(answers))
    assert not has_first_guess("ansor", task, context)
    assert has_first_guess("ansor", task, context)
    assert not has_first_guess("metaschedule", task, context)
    # What is enough is not looked up again.
    assert open_search("ansor", task, [], context).propose(1)


def test_options_of_the_evolution_are_followed(task, measurer):
    few = SearchContext(HOST, RULES, options=EvolutionOptions(pool=4, breeding=1, looking=0))
    assert len(open_search("ansor", task_of(softmax(8, 64)), [], few).propose(BATCH)) <= 4
    chance = EvolutionOptions(fresh=1.0, enough=1 << 30)
    context = SearchContext(HOST, RULES, options=chance)
    assert searched(task, measurer, context=context, batch=4)


def test_a_sketch_whose_first_programs_were_slow_has_its_look():
    task, rules = task_of(matmul(64, 64, 64)), [r for r in RULES if r.name != "register-tile"]
    sketches = derive(task.mod, HOST, rules).sketches
    context = SearchContext(HOST, rules, options=replace(FEW, look=5, enough=8))
    search = open_search("ansor", task, [], context)
    looks = Counter()
    for _ in range(7):
        batch = search.propose(BATCH // 2)
        at = [recover(sketches, trace)[0].sketch for trace in batch]
        looks.update(at)
        search.observe(
            [Outcome(t, (1e-3 if n == 0 else 1.0,)) for t, n in zip(batch, at, strict=True)]
        )
    assert len(looks) == len(sketches) > 2
    assert min(looks.values()) >= 5
    assert looks[0] == max(looks.values())


def test_a_small_space_is_exhausted_and_not_repeated():
    task = task_of(matmul(1, 2, 2))
    search = open_search("ansor", task, [], _context())
    found = []
    for _ in range(30):
        batch = search.propose(BATCH)
        if not batch:
            break
        found += batch
        search.observe([Outcome(trace, (1e-3 * (1 + n % 3),)) for n, trace in enumerate(batch)])
    assert not search.propose(BATCH)
    assert len(set(found)) == len(found)


def test_a_program_that_cannot_be_lowered_has_no_features(task):
    good = derive(task.mod, HOST, RULES).sketches[0].program(Guess()).sch
    extract = Extractor(HOST)
    extract._extract = _refusing(extract._extract, "bad")
    assert [rows is None for rows in extract([good, "bad", good])] == [False, True, False]


def test_the_context_has_features_of_programs_that_no_search_proposed(task):
    context = _context()
    trace = dump(derive(task.mod, HOST, RULES).sketches[0].program(Guess()).sch.trace)
    assert len(decode(context.features(task, trace))) > 0
    assert context.features(task, "nonsense") is None


def test_a_recording_is_read_back_from_its_file(task, measurer, recording, tmp_path):
    path = tmp_path / "recorded.jsonl"
    recordings.save(path, ((task.key.workload, outcome) for outcome in recording))
    traces = [outcome.trace for outcome in recording[:5]]
    again = recordings.of_file(path)
    with again:
        assert again.measure(task, traces) == measurer.measure(task, traces) == recording[:5]
        (unknown,) = again.measure(task, ["[[],[]]"])  # a file holds no model of the time
    assert unknown.error == UNMEASURED


def test_a_damaged_recording_names_its_line(tmp_path):
    path = tmp_path / "recorded.jsonl"
    path.write_text(json.dumps({"workload": "w", "trace": "t"}) + "\n")
    with pytest.raises(UsageError, match=r"recorded\.jsonl:1"):
        recordings.of_file(path)


def test_a_registry_is_a_recording(task, run, tmp_path):
    with Registry.open(tmp_path / "registry.db") as registry:
        registry.add_target(HOST)
        registry.add_workloads([task.workload])
        registry.add_batch([measured(task, outcome) for outcome in run[0]], [])
        again = recordings.of_registry(registry, HOST)
    answers = again.measure(task, [outcome.trace for outcome in run[0]])
    assert [answer.latency for answer in answers] == [outcome.latency for outcome in run[0]]


def _context():
    return SearchContext(HOST, RULES, options=FEW)


def _refusing(extract, bad):
    def refuse(schedules):
        if bad in schedules:
            raise RuntimeError("cannot be lowered")
        return extract(schedules)

    return refuse


def test_traces_that_were_kept_replay_and_are_recovered():
    target = load_target("cortex-a53", [shipped("targets")])
    for kept in json.loads(TRACES.read_text(encoding="utf-8")):
        mod = PROGRAMS[kept["program"]]()
        assert dump(replay(mod, kept["trace"]).trace) == kept["trace"]
        sketches = derive(mod, target, shipped_rules("llvm")).sketches
        genome, candidate = recover(sketches, kept["trace"])
        assert str(sketches[genome.sketch]) == kept["sketch"]
        made = choices(candidate.sketch, genome.decisions)
        asked = [one for one in made if not one[0].startswith("rule ")]
        assert json.loads(json.dumps(asked)) == kept["choices"]
