"""Which records of other versions of TVM are worth trying with this one."""

import pytest
from helpers.registry_samples import TVM, key, measurement, record, workload

from ansor_deploy.registry.record import SearchEnd

KEY = key(0)
OLD, OLDER = "0.26.0", "0.25.0"


@pytest.fixture
def registry(registry):
    registry.add_workloads([workload(0), workload(1)])
    return registry


def old(seconds, trace, tvm=OLD):
    return record(KEY, seconds, trace, tvm=tvm)


def test_the_best_few_of_each_version_the_best_first(registry):
    slow = [old(n * 1e-3, f"slow {n}") for n in range(1, 5)]
    fast = [old(n * 1e-4, f"fast {n}", OLDER) for n in range(1, 5)]
    registry.add_batch([], [*slow, *fast])
    assert registry.stale(KEY, TVM, 2) == [fast[0], slow[0], fast[1], slow[1]]
    assert registry.stale(key(1), TVM) == []


def test_those_that_were_beaten_come_last(registry):
    lucky, good = old(1e-3, "lucky"), old(2e-3, "good")
    registry.add_batch([], [lucky])
    registry.add_contest(good, [lucky.id], "2026-11-20T12:00:00Z")
    assert registry.stale(KEY, TVM) == [good, lucky]
    assert registry.stale(KEY, TVM, 1) == [good]


def test_what_this_version_has_tried_is_left_out(registry):
    registry.add_batch([], [old(1e-3, "[]"), old(2e-3, "known"), old(3e-3, "new")])
    registry.add_batch([measurement(KEY, error="replay")], [record(KEY, 1e-3, "known")])
    assert [one.trace for one in registry.stale(KEY, TVM)] == ["new"]
    assert registry.stale(KEY, TVM, 2) == []


def test_what_another_version_has_tried_is_not(registry):
    registry.add_batch([measurement(KEY)], [old(1e-3, "[]")])
    assert registry.stale(KEY, "0.28.0")
    assert registry.stale(KEY, TVM) == []


def test_the_same_trace_is_tried_once(registry):
    registry.add_batch([], [old(1e-3, "same"), old(2e-3, "same", OLDER)])
    assert registry.stale(KEY, TVM) == [old(1e-3, "same")]


def test_the_registry_counts_them(registry):
    assert registry.outdated(TVM) == 0
    registry.add_batch([], [old(1e-3, "[]"), old(2e-3, "more"), record(key(1), 1e-3)])
    assert (registry.outdated(TVM), registry.outdated(OLD)) == (1, 1)
    assert registry.outdated("0.28.0") == 2
    assert registry.stats()["per_tvm"] == [
        {"tvm": OLD, "records": 2, "tasks": 1},
        {"tvm": TVM, "records": 1, "tasks": 1},
    ]


def test_ends_of_searches_come_back_as_they_were(registry):
    when = "2026-01-31T12:00:00Z"
    ends = [SearchEnd(KEY, tvm, "ansor", 64, "limit", 64, when) for tvm in (OLD, TVM)]
    registry.add_searches(ends)
    assert registry.ends(KEY) == ends
    assert registry.ends(key(1)) == []


def test_a_copy_is_apart_from_its_file(registry):
    registry.add_batch([], [record(KEY, 1e-3)])
    with registry.copy() as copy:
        copy.add_batch([], [record(KEY, 5e-4)])
        assert copy.best([KEY], TVM) == {KEY: record(KEY, 5e-4)}
    assert registry.best([KEY], TVM) == {KEY: record(KEY, 1e-3)}
