"""Hosts of one kind of machine that have timed the same schedules, and one that disagrees."""

from dataclasses import replace

import pytest
from helpers.cli_inside import answer, program
from helpers.registry_samples import TARGET, TVM, key, record, workload

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


def schedules(folder, **hosts):
    """A registry where hosts take so many milliseconds for each of some schedules of a task."""
    with Registry.open(folder / "r.db") as registry:
        registry.add_target(TARGET)
        registry.add_workloads([workload(0)])
        for host, times in hosts.items():
            made = [record(key(0), ms / 1e3, f"[{n}]") for n, ms in enumerate(times)]
            registry.add_batch([], [on(one, host) for one in made])
    return folder / "r.db"


def on(made, host, **more):
    return replace(made, provenance=replace(made.provenance, device=host), **more)


def test_the_best_is_by_the_median_of_the_hosts_that_measured_it(tmp_path):
    path = schedules(tmp_path, a=[0.5, 0.9], b=[1.2], c=[1.1])
    with Registry.open(path) as registry:
        assert registry.best([key(0)], TVM)[key(0)].trace == "[1]"
        assert [one.trace for one in registry.top(key(0), TVM, 9)] == ["[1]", "[0]", "[0]", "[0]"]
        # What others claim stays behind what was measured here, and has medians of its own.
        made = {host: record(key(0), ms / 1e3, "[0]") for host, ms in {"d": 0.5, "e": 2.0}.items()}
        registry.add_batch([], [on(one, host, claimed=True) for host, one in made.items()])
        assert registry.best([key(0)], TVM)[key(0)].trace == "[1]"
        assert registry.claims(key(0), TVM, 1e-3, 9) == []
        assert len(registry.claims(key(0), TVM, 1.5e-3, 9)) == 2
    shown = answer(tmp_path, "registry", "show", key(0).workload, "--registry", "r.db")["records"]
    assert [(row["hosts"], row["claimed"]) for row in shown[:3]] == [(1, False), *[(3, False)] * 2]
    assert [row["typical_ms"] for row in shown[:2]] == pytest.approx([0.9, 1.1])
    assert [row["place"] for row in shown] == [1, 2, 3, 4, 5, 6]
    said = program(tmp_path, "registry", "show", key(0).workload, "--registry", "r.db").stdout
    assert "1.10 ms on 3 hosts" in " ".join(said.split())


def test_a_record_says_the_clock_at_which_it_was_measured(tmp_path):
    with Registry.open(tmp_path / "r.db") as registry:
        registry.add_target(TARGET)
        registry.add_workloads([workload(0)])
        slow, fast = (record(key(0), seconds) for seconds in (2e-3, 1e-3))
        known = replace(fast, provenance=replace(fast.provenance, clock=2600))
        registry.add_batch([], [slow, known])
    shown = answer(tmp_path, "registry", "show", key(0).workload[:12], "--registry", "r.db")
    said = [one["provenance"].get("clock") for one in shown["records"]]
    assert sorted(said, key=str) == [2600, None]
