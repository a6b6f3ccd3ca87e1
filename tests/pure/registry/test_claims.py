"""What others claim comes after what was measured here, whatever they say of it."""

from dataclasses import replace

import pytest
from helpers.registry_samples import TARGET, TVM, key, record, workload

from ansor_deploy.registry.record import Contest, SearchEnd
from ansor_deploy.request import Request
from ansor_deploy.space.rule_files import rules_digest
from ansor_deploy.tune.ledger import Ledger
from ansor_deploy.tune.standing import FALSE

NOON, LATER = "2026-01-31T12:00:00+00:00", "2026-02-01T12:00:00+00:00"
SHIPPED = rules_digest([], "llvm")
OURS, CLAIM, OTHER = record(key(), 2e-2), record(key(), 1e-2, "[1]"), record(key(), 1.5e-2, "[2]")


@pytest.fixture
def registry(registry):
    registry.add_workloads([workload(n) for n in range(2)])
    registry.add_batch([], [OURS, replace(CLAIM, claimed=True), replace(OTHER, claimed=True)])
    return registry


def ledger(registry, *, measures=True):
    made = Ledger(registry, Request(TARGET, registry.path), measures=measures)
    made.tvm = TVM
    return made


def test_what_was_measured_here_is_the_best(registry):
    assert registry.top(key(), TVM, 9) == [OURS, CLAIM, OTHER]
    assert [one.claimed for one in registry.top(key(), TVM, 9)] == [False, True, True]
    assert registry.query()[0]["id"] == OURS.id
    (best,) = registry.rows("SELECT id, claimed FROM best_records")
    assert best == {"id": OURS.id, "claimed": 0}


def test_a_claim_is_no_part_of_what_a_record_says():
    claim = replace(CLAIM, claimed=True)
    assert (claim, claim.id) == (CLAIM, CLAIM.id)
    assert "claimed" not in claim.to_json()


def test_what_is_measured_here_is_no_claim_when_it_comes_back(registry):
    registry.add_batch([], [replace(OURS, claimed=True)])
    assert registry.top(key(), TVM, 1)[0].claimed is False


def test_others_do_not_say_what_has_beaten_what_was_measured_here(registry):
    ours = record(key(), 1.9e-2, "[3]")
    registry.add_batch([], [ours])
    assert registry.add_contests([Contest(ours.id, OURS.id, LATER)]) == 0
    assert registry.add_contests([Contest(ours.id, CLAIM.id, LATER)]) == 1
    assert registry.top(key(), TVM, 2) == [ours, OURS]
    assert registry.add_contests([Contest(CLAIM.id, OTHER.id, LATER)]) == 1
    assert registry.top(key(), TVM, 4) == [ours, OURS, OTHER, CLAIM]


def test_a_claim_that_was_beaten_here_stays_so(registry):
    registry.add_contest(OURS, [CLAIM.id], NOON)
    registry.add_contests([Contest(OURS.id, CLAIM.id, LATER)])
    assert ledger(registry).standing([key()])[key()].claim == OTHER


def test_a_claim_counts_only_where_nothing_can_be_measured(registry):
    other = record(key(1), 1e-2, "[1]")
    registry.add_batch([], [replace(other, claimed=True)])
    keys = [key(), key(1)]
    assert ledger(registry).best(keys) == {key(): OURS}
    assert ledger(registry, measures=False).best(keys) == {key(): OURS, key(1): other}
    claims = [known.claim for known in ledger(registry).standing(keys).values()]
    assert claims == [CLAIM, other]


def test_what_no_machine_can_have_timed_is_no_claim(registry):
    lie = record(key(1), 1e-6)
    registry.add_batch([], [replace(lie, claimed=True)])
    assert ledger(registry, measures=False).best([key(1)]) == {}
    registry.add_batch([], [replace(record(key(1), 1e-2), claimed=True)])
    assert ledger(registry).standing([key(1)])[key(1)].claim.latency == 1e-2


@pytest.mark.parametrize(("times", "believed"), [(0.9, True), (1.1, False)])
def test_the_search_behind_a_false_claim_is_not_believed(registry, times, believed):
    claim = record(key(1), 1e-2)
    registry.add_batch([], [replace(claim, claimed=True)])
    end = SearchEnd(key(1), TVM, "ansor", 64, "limit", 1 << 20, NOON, SHIPPED)
    registry.add_searches([replace(end, claimed=True)])
    shown = record(key(1), times * FALSE * claim.latency, "[1]")
    registry.add_contest(shown, [claim.id], LATER)
    assert ledger(registry).best([key(1)]) == {key(1): shown}
    assert (ledger(registry).standing([key(1)])[key(1)].reason == "") is believed
    registry.add_searches([end])  # made here
    assert ledger(registry).standing([key(1)])[key(1)].reason == ""


def test_on_a_busy_machine_the_fastest_of_all_that_ran_counts(registry):
    end = SearchEnd(key(), TVM, "ansor", 64, "limit", 1 << 20, NOON, SHIPPED)
    registry.add_searches([replace(end, claimed=True)])
    slow = record(key(), 9 * CLAIM.latency, "[3]")
    registry.add_contest(slow, [OURS.id, CLAIM.id, OTHER.id], LATER)
    assert ledger(registry).best([key()]) == {key(): slow}
    assert ledger(registry).standing([key()])[key()].reason == ""  # OURS came near
