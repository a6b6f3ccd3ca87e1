"""What version 0.1.0 kept of faults of its machine counts for nothing, and stays where it is."""

from dataclasses import replace

import pytest
from helpers.registry_samples import TARGET, TVM, key, measurement, workload

from ansor_deploy.registry.record import SearchEnd
from ansor_deploy.registry.store import Registry

FULL = "building: OSError: [Errno 28] No space left on device"


@pytest.fixture
def registry(tmp_path):
    with Registry.open(tmp_path / "registry.db") as store:
        store.add_target(TARGET)
        store.add_workloads([workload(0), workload(1)])
        yield store


def measured(registry, at, *messages):
    for message in messages:
        one = measurement(key(), error="build" if message else "")
        where = replace(one.provenance, created=at)
        registry.add_batch([replace(one, message=message, provenance=where)], [])


def ended(registry, at):
    end = SearchEnd(key(), TVM, "ansor", 4, "exhausted", 64, at)
    registry.add_searches([end])
    return end


def test_faults_of_a_machine_are_no_trials(registry):
    measured(registry, "10:00", "", FULL, "building: SIGKILL", "building: RuntimeError: no")
    assert registry.trials([key()]) == {key(): 2}
    for found in (registry.measurements(TARGET.fingerprint),
                  registry.measurements(TARGET.fingerprint, key())):  # fmt: skip
        assert [one.message for one in found] == ["", "building: RuntimeError: no"]
    assert registry.stats()["measurements"] == 4


def test_a_search_that_met_them_has_not_ended(registry):
    before = ended(registry, "09:00")
    measured(registry, "10:00", "", FULL)
    ended(registry, "10:00")
    assert registry.ends(key()) == [before]
    measured(registry, "11:00", "")
    again = ended(registry, "11:00")
    assert registry.ends(key()) == [before, again]


def test_a_search_that_met_failures_of_candidates_has_ended(registry):
    measured(registry, "10:00", "building: RuntimeError: no")
    end = ended(registry, "10:00")
    assert registry.ends(key()) == [end]
