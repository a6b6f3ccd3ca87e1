"""Hosts of one kind of machine that have timed the same schedules, and one that disagrees."""

from dataclasses import replace

import pytest
from helpers.cli_inside import answer, program
from helpers.registry_samples import TARGET, key, record, workload

from ansor_deploy.registry.store import Registry


def timed(number, host, seconds):
    made = record(key(number), seconds * (1 + number))
    return replace(made, provenance=replace(made.provenance, device=host))


def stats(folder, schedules=4, **hosts):
    """What `registry stats` says where hosts take so many seconds for each of some schedules."""
    (folder / "r.db").unlink(missing_ok=True)
    with Registry.open(folder / "r.db") as registry:
        registry.add_target(TARGET)
        registry.add_workloads([workload(number) for number in range(schedules)])
        for host, seconds in hosts.items():
            registry.add_batch([], [timed(number, host, seconds) for number in range(schedules)])
    return answer(folder, "registry", "stats", "--registry", "r.db")["disagreeing"]


def test_a_host_that_all_others_contradict_is_named(tmp_path):
    (odd,) = stats(tmp_path, a=1e-3, b=1.1e-3, c=2e-3, d=1.05e-3)
    assert (odd["host"], odd["target"], odd["schedules"], odd["off"]) == ("c", "board", 4, 4)
    assert odd["ratio"] == pytest.approx(2 / 1.05)
    said = program(tmp_path, "registry", "stats", "--registry", "r.db").stdout
    assert (
        "c disagrees with all other hosts of board: 1.90x their time, in 4 of 4 schedules" in said
    )
    (odd,) = stats(tmp_path, a=1e-3, b=1.1e-3, c=5e-4)
    assert (odd["host"], odd["ratio"] < 0.5) == ("c", True)


def test_no_host_is_named_without_others_that_agree(tmp_path):
    assert stats(tmp_path, a=1e-3, b=1.1e-3, c=1.2e-3) == []
    assert stats(tmp_path, a=1e-3, b=2e-3) == []
    assert stats(tmp_path, a=1e-3, b=2e-3, c=4e-3, d=8e-3) == []
    assert stats(tmp_path, 2, a=1e-3, b=1e-3, c=2e-3) == []
