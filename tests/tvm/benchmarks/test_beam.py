"""Beam search over incomplete programs: what it proposes are complete ones, each once."""

import pytest
from helpers import programs
from helpers.built import HOST

from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.extract import task_of
from ansor_deploy.search.context import SearchContext
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.trace import replay
from benchmarks.search import beam, searching


@pytest.fixture(scope="module")
def task():
    return task_of(programs.softmax(16, 96)["main"], "softmax", HOST)


@pytest.fixture
def search(task, monkeypatch):
    monkeypatch.setattr(beam, "WIDTH", 4)
    return beam.BeamSearch(task, SearchContext(HOST, shipped_rules(HOST.kind)))


def test_no_program_is_proposed_twice(task, search):
    found = [*search.propose(3), *search.propose(3)]
    assert len(set(found)) == len(found) == 6
    for trace in found:
        assert "parallel" in replay(task.mod, trace).mod.script()


def test_it_learns_from_what_it_proposed_alone(task, search):
    first = search.propose(2)
    search.observe([Outcome(trace, (1e-3,)) for trace in (*first, "another's")])
    known = search._context.model.samples
    assert set(known) == {(task.key.workload, trace) for trace in first}


def test_programs_are_pruned_after_every_step(monkeypatch):
    monkeypatch.setattr(beam, "WIDTH", 4)
    task = searching.operator_task("DEP-4-b1", HOST)
    search = beam.BeamSearch(task, SearchContext(HOST, shipped_rules(HOST.kind)))
    lengths, ranked = [], search._ranked

    def noted(partials):
        found = list(partials)
        lengths.append(max(len(one.path) for one in found))
        return ranked(found)

    monkeypatch.setattr(search, "_ranked", noted)
    whole = search._beam()
    assert lengths == list(range(1, len(lengths) + 1))
    assert 1 < lengths[-1] == max(len(one.path) for one in whole)
    assert len(whole) <= beam.WIDTH
