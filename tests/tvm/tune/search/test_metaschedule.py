"""The MetaSchedule search: candidates that fit, none twice, learning from what was measured."""

import os
import sys

import pytest
import tvm
from helpers.built import HOST
from helpers.programs import matmul
from tvm_ffi import structural_equal

from ansor_deploy.errors import UsageError
from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.relax.extract import _task
from ansor_deploy.registry.record import Measurement, Provenance
from ansor_deploy.space.canonical_text import canonical_text, parse
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump, replay
from ansor_deploy.tune.search import metaschedule, open_search
from ansor_deploy.tune.search.context import SearchContext

SECONDS = (1e-3, 2e-3, 3e-3)


@pytest.fixture(scope="module", autouse=True)
def _small_search():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metaschedule, "POPULATION", 16)
        patch.setattr(metaschedule, "GENERATIONS", 1)
        patch.setattr(metaschedule, "ROUND", 8)
        patch.setattr(metaschedule, "UNMEASURED", 8)
        yield


@pytest.fixture(scope="module")
def task():
    text = canonical_text(matmul(16, 32, 24)["main"])
    return _task("matmul_add_relu", text, parse(text), 1, HOST)


@pytest.fixture(scope="module")
def proposed(task):
    """A search without a past, its first two batches, and outcomes of the first."""
    search = open_search("metaschedule", task, [], SearchContext(HOST, (), seed=0))
    first = search.propose(8)
    search.observe([outcome(number, text) for number, text in enumerate(first)])
    return search, first, search.propose(8)


def outcome(number, text):
    if number == 0:
        return Outcome(text, error="timeout", message="killed after 1 s")
    return Outcome(text, tuple(second * number for second in SECONDS))


def measured(task, text, search, seconds=SECONDS, error=""):
    provenance = Provenance("0.2.0", "0.27.0", search, os.uname().nodename, 0, "2026-01-31T12:00Z")
    return Measurement(task.key, text, () if error else seconds, error, error, provenance)


def test_the_first_batch_is_full_and_distinct(proposed):
    _, first, _ = proposed
    assert len(first) == 8
    assert len(set(first)) == 8


def test_candidates_replay_to_different_programs(task, proposed):
    _, first, _ = proposed
    programs = [replay(task.mod, text).mod for text in first]
    assert not any(structural_equal(mod, task.mod) for mod in programs)
    assert not structural_equal(programs[0], programs[1])


def test_nothing_is_proposed_twice(proposed):
    _, first, second = proposed
    assert second
    assert not set(first) & set(second)


def test_outcomes_reach_the_database(proposed):
    search, first, _ = proposed
    records = search._database.get_top_k(search._workload, 100)
    assert len(records) == len(first) - 1  # the failure is never among the best
    assert min(float(min(record.run_secs)) for record in records) == min(SECONDS)


def test_the_cost_model_has_seen_the_outcomes(proposed):
    search, first, _ = proposed
    assert search._model.data_size == len(first)


def test_what_was_measured_before_is_not_proposed_again(task, proposed):
    _, first, _ = proposed
    known = [measured(task, text, "metaschedule") for text in first]
    search = open_search("metaschedule", task, known, SearchContext(HOST, (), seed=0))
    batch = search.propose(8)
    assert batch
    assert not set(first) & set(batch)


def test_a_default_schedule_among_the_known_does_no_harm(task, proposed):
    _, first, _ = proposed
    default = dump(default_schedule(task.mod, HOST).trace)
    known = [
        measured(task, default, "default"),
        measured(task, first[0], "metaschedule"),
        measured(task, first[1], "metaschedule", error="crash"),
    ]
    search = open_search("metaschedule", task, known, SearchContext(HOST, (), seed=1))
    batch = search.propose(8)
    assert batch
    assert default not in batch
    search.observe([outcome(number, text) for number, text in enumerate(batch)])
    for text in search.propose(8):
        replay(task.mod, text)


def test_a_damaged_trace_among_the_known_is_passed_over(task):
    known = [measured(task, text, "metaschedule") for text in ("{}", "nonsense", "[[],[]]")]
    assert open_search("metaschedule", task, known, SearchContext(HOST, (), seed=2)).propose(2)


def test_an_outcome_of_the_default_schedule_does_no_harm(task):
    search = open_search("metaschedule", task, [], SearchContext(HOST, (), seed=3))
    search.observe([Outcome(dump(default_schedule(task.mod, HOST).trace), SECONDS)])
    batch = search.propose(4)
    assert batch
    assert all(isinstance(replay(task.mod, text).mod, tvm.IRModule) for text in batch)


def test_it_learns_on_one_thread(proposed):
    search, _, _ = proposed
    assert search._model.config.nthread == 1


def test_for_a_cpu_no_instruction_of_a_gpu_is_parsed(monkeypatch):
    for name in ("tvm.s_tir.tensor_intrin", gpus := "tvm.s_tir.tensor_intrin.cuda"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    metaschedule.load_intrinsics(HOST.kind)
    assert gpus not in sys.modules


def test_a_search_that_is_not_there_is_a_usage_error(task):
    with pytest.raises(UsageError, match="no search is called"):
        open_search("nonsense", task, [], SearchContext(HOST, (), seed=0))
