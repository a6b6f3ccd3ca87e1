"""Whether a library has the registry's records, or is what was shipped in their place."""

from dataclasses import replace

import pytest
from helpers import libraries
from helpers.libraries import task
from helpers.registry_samples import TARGET, TVM, key, record, workload
from msgspec import structs

from ansor_deploy.registry.record import SearchEnd
from ansor_deploy.registry.store import Registry
from ansor_deploy.request import Request, make_objective
from ansor_deploy.ship.up_to_date import has_same_records, records_digest
from ansor_deploy.space.rule_files import rules_digest
from ansor_deploy.tune.ledger import Ledger

RECORDS = [record(key(n), 1e-2) for n in range(2)]


@pytest.fixture
def ledger(tmp_path):
    with Registry.open(tmp_path / "r.db") as registry:
        registry.add_target(TARGET)
        registry.add_workloads([workload(n) for n in range(2)])
        registry.add_batch([], RECORDS)
        when = "2026-01-31T12:00:00Z"
        words, rules = ("ansor", 64, "limit", 1 << 20, when), rules_digest([], "llvm")
        ends = [SearchEnd(one.key, TVM, *words, rules) for one in RECORDS]
        registry.add_searches(ends)
        made = Ledger(registry, Request(TARGET, registry.path), measures=True)
        made.tvm = TVM
        yield made


def manifest(*ids, shipped="tuned", compared=RECORDS):
    pairs = zip(RECORDS, ids, strict=True)
    tasks = [task(one.key.workload, record=name, impact=0.5) for one, name in pairs]
    times = {
        "latency_ms": 2.0,
        "shapes_ms": [2.0],
        "tuned_ms": 2.0,
        "untuned_ms": 2.0,
        "ratio": 1.0,
        "pairs": 0,
    }
    times |= dict.fromkeys(("interval", "verdict", "seen", "beside"))
    speed = {**times, "records": records_digest(compared)}
    return libraries.manifest(tasks=tasks, shipped=shipped, speed=speed, lenders=None)


def test_a_library_with_the_best_records_is_up_to_date(ledger):
    ids = [one.id for one in RECORDS]
    assert has_same_records(manifest(*ids), ledger)
    assert not has_same_records(manifest(ids[0], "default"), ledger)


def test_an_untuned_library_is_up_to_date_until_there_are_other_records(ledger):
    untuned = manifest("default", "default", shipped="untuned")
    assert has_same_records(untuned, ledger)
    ledger.registry.add_batch([], [record(key(0), 5e-3)])
    assert not has_same_records(untuned, ledger)


def test_what_meets_its_goal_is_up_to_date_though_more_could_be_tuned(tmp_path):
    with Registry.open(tmp_path / "r.db") as registry:
        registry.add_target(TARGET)
        registry.add_workloads([workload(n) for n in range(2)])
        registry.add_batch([], RECORDS)  # of searches that have not ended
        known = manifest(*(one.id for one in RECORDS))
        for seconds, same in ((3e-3, True), (1e-3, False)):
            goal = make_objective("goal", [seconds])
            ledger = Ledger(registry, Request(TARGET, registry.path, objective=goal), measures=True)
            ledger.tvm = TVM
            assert has_same_records(known, ledger) == same


def test_a_claim_that_matters_makes_it_out_of_date(ledger):
    known = manifest(*(one.id for one in RECORDS))
    ledger.registry.add_batch([], [replace(record(key(0), 2e-2), claimed=True)])
    assert has_same_records(known, ledger)  # it says to be slower
    ledger.registry.add_batch([], [replace(record(key(0), 1e-5, "[1]"), claimed=True)])
    assert has_same_records(known, ledger)  # no machine does this
    claim = replace(record(key(0), 5e-3, "[2]"), claimed=True)
    ledger.registry.add_batch([], [claim])
    assert not has_same_records(known, ledger)
    little = structs.replace(known.tasks[0], impact=0.0)
    small = structs.replace(known, tasks=(little, known.tasks[1]))
    assert has_same_records(small, ledger)
    ledger.add_winner(RECORDS[0], [claim])
    assert has_same_records(known, ledger)
