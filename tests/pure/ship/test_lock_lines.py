"""A lock changes where a schedule does, and not with the machine that measured it again."""

from dataclasses import replace
from importlib import metadata

import pytest
from helpers.foreign import bundle, record
from helpers.registry_samples import TARGET

from ansor_deploy.registry.lock_text import read_lock, write_lock
from ansor_deploy.registry.store import Registry
from ansor_deploy.request import Request
from ansor_deploy.ship.lock import write_entries
from ansor_deploy.tune.ledger import Ledger
from ansor_deploy.views.plain import QuietReport

TVM = metadata.version("apache-tvm")
SAID = record(64)


@pytest.fixture
def ledger(tmp_path):
    with Registry.open(tmp_path / "r.db") as registry:
        registry.add_target(TARGET)
        registry.add_workloads(list(bundle(64, 128).workloads.values()))
        lock = tmp_path / "records.lock"
        write_lock(lock, TARGET, TVM, [SAID])
        yield Ledger(registry, Request(TARGET, registry.path, lock=lock), measures=True)


def written(ledger, *records):
    write_entries([SAID.key], {one.key: one for one in records}, ledger, QuietReport())
    return read_lock(ledger.request.lock, TARGET, TVM)


def test_the_same_schedule_keeps_its_line(ledger):
    assert written(ledger, record(64, 5e-3)).records == {SAID.key: SAID}


def test_another_schedule_is_another_line(ledger):
    other = replace(SAID, trace=SAID.trace.replace("[8,4]", "[4,8]"))
    assert other.trace != SAID.trace
    assert written(ledger, other).records == {SAID.key: other}


def test_a_line_that_was_too_small_to_be_tried_stays(ledger):
    ledger.registry.add_batch([], [SAID])
    assert written(ledger).records == {SAID.key: SAID}


def test_a_line_that_was_beaten_gives_way_to_the_default_schedule(ledger):
    ledger.registry.add_batch([], [SAID])
    ledger.registry.add_contest(replace(record(64, 9e-3), claimed=False), [SAID.id], "2026-11-20")
    found = written(ledger)
    assert (found.records, found.defaults) == ({}, {SAID.key.workload})
