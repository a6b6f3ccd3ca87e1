"""What goes into the registry comes out of it, and the questions a build asks are answered."""

import dataclasses
import sqlite3
import subprocess
import sys
import zlib

import pytest
from helpers import unsynced
from helpers.registry_samples import (
    TARGET,
    TVM,
    build,
    key,
    measurement,
    provenance,
    record,
    workload,
)

from ansor_deploy.errors import RegistryError
from ansor_deploy.registry import connect, lookups, schema
from ansor_deploy.registry.connect import SCHEMA_VERSION
from ansor_deploy.registry.record import Contest, Measurement, SearchEnd
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.digest import sha256

WORKLOADS = [workload(0), workload(1), workload(2, "matmul")]
KEYS = [key(0), key(1), key(2, "matmul")]
NOON, LATER = "2026-01-31T12:00:00+00:00", "2026-02-01T12:00:00+00:00"


@pytest.fixture
def registry(registry):
    registry.add_workloads(WORKLOADS)
    return registry


def test_the_best_is_the_fastest_of_this_tvm(registry):
    fast, slow = record(KEYS[0], 1e-3), record(KEYS[0], 2e-3)
    other_tvm = record(KEYS[0], 1e-4, tvm="0.26.0")
    registry.add_batch([], [slow, fast, other_tvm])
    assert registry.best([*KEYS, KEYS[0]], TVM) == {KEYS[0]: fast}
    assert registry.best(KEYS, "0.26.0") == {KEYS[0]: other_tvm}
    assert registry.best([], TVM) == {}


def test_top_is_in_order_of_latency(registry):
    records = [record(KEYS[0], n * 1e-3) for n in (3, 1, 2)]
    registry.add_batch([], records)
    assert registry.top(KEYS[0], TVM, 2) == [records[1], records[2]]
    assert registry.top(KEYS[1], TVM, 2) == []


def test_a_record_that_was_beaten_is_not_the_best(registry):
    lucky, steady, slow = (record(KEYS[0], seconds) for seconds in (1e-3, 2e-3, 3e-3))
    registry.add_batch([], [lucky, slow])
    registry.add_contest(steady, [lucky.id], NOON)
    assert registry.best(KEYS, TVM) == {KEYS[0]: steady}
    assert registry.top(KEYS[0], TVM, 9) == [steady, slow, lucky]
    (row,) = registry.query()
    assert row["id"] == steady.id
    assert registry.verify() == []


def test_of_two_comparisons_of_the_same_records_the_later_counts(registry):
    one, two, slow = (record(KEYS[0], seconds) for seconds in (1e-3, 2e-3, 3e-3))
    registry.add_batch([], [one, two, slow])
    registry.add_contest(two, [one.id, slow.id], NOON)
    registry.add_contest(two, [one.id], NOON)  # which says nothing new
    registry.add_contest(one, [two.id], LATER)
    assert registry.top(KEYS[0], TVM, 9) == [one, two, slow]


@pytest.mark.parametrize("late", [True, False], ids=["later", "earlier"])
def test_the_later_of_two_comparisons_counts_whichever_is_heard_of_first(registry, late):
    one, two, slow = (record(KEYS[0], seconds) for seconds in (1e-3, 2e-3, 3e-3))
    registry.add_batch([], [dataclasses.replace(each, claimed=True) for each in (one, two, slow)])
    contests = [Contest(one.id, two.id, NOON), Contest(two.id, one.id, LATER)]
    for contest in contests if late else reversed(contests):
        assert registry.add_contests([contest]) == 1
    assert registry.add_contests(contests) == 0
    assert registry.top(KEYS[0], TVM, 9) == [one, slow, two]
    assert registry.add_contests([Contest(one.id, two.id, LATER)]) == 1
    assert registry.top(KEYS[0], TVM, 9) == [one, two, slow]  # of the same time: neither counts


def test_the_fastest_is_the_best_where_each_was_beaten(registry):
    ring = [record(KEYS[0], seconds) for seconds in (1e-3, 2e-3, 3e-3)]
    registry.add_batch([], ring)
    for loser, winner in zip(ring, [*ring[1:], ring[0]], strict=True):
        registry.add_contest(winner, [loser.id], NOON)
    assert registry.top(KEYS[0], TVM, 9) == ring
    assert [row["id"] for row in registry.query()] == [ring[0].id]


def test_being_beaten_under_another_tvm_does_not_count(registry):
    here, newer = record(KEYS[0], 1e-3), record(KEYS[0], 2e-3, tvm="0.28.0")
    registry.add_batch([], [here])
    registry.add_contest(newer, [here.id], NOON)
    assert registry.best(KEYS, TVM) == {KEYS[0]: here}


def test_a_contest_is_added_whole_or_not_at_all(registry):
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        registry.add_contest(record(KEYS[0], 1e-3), ["unknown"], NOON)
    assert registry.best(KEYS, TVM) == {}


def test_another_target_shares_nothing(registry):
    registry.add_batch([], [record(KEYS[0], 1e-3)])
    other = dataclasses.replace(KEYS[0], target="0" * 64)
    assert registry.best([other], TVM) == {}
    assert registry.trials([other]) == {other: 0}


def test_adding_a_record_twice_keeps_one(registry):
    registry.add_batch([], [record(KEYS[0], 1e-3)] * 2)
    registry.add_batch([], [record(KEYS[0], 1e-3)])
    assert len(registry.top(KEYS[0], TVM, 9)) == 1


def test_a_record_cannot_be_changed(registry):
    registry.add_batch([], [record(KEYS[0], 1e-3)])
    with pytest.raises(sqlite3.IntegrityError, match="immutable"):
        registry._connection.execute("UPDATE records SET latency = 1e-9")


def test_measurements_come_back_in_order_failures_too(registry):
    added = [
        measurement(KEYS[0], 1e-3),
        measurement(KEYS[1], error="timeout"),
        Measurement(KEYS[0], "trace \u00e4", (1.5e-3, 2e-3), "", "", provenance(seed=7)),
    ]
    registry.add_batch(added, [])
    assert list(registry.measurements(TARGET.fingerprint)) == added
    assert list(registry.measurements(TARGET.fingerprint, KEYS[0])) == [added[0], added[2]]
    assert list(registry.measurements("0" * 64)) == []
    assert registry.trials(KEYS) == {KEYS[0]: 2, KEYS[1]: 1, KEYS[2]: 0}


def test_more_measurements_than_are_read_at_a_time(registry, monkeypatch):
    monkeypatch.setattr("ansor_deploy.registry.database._CHUNK", 10)
    added = [measurement(KEYS[n % 3], 1e-3 * (n + 1)) for n in range(35)]
    registry.add_batch(added, [])
    assert list(registry.measurements(TARGET.fingerprint)) == added
    assert list(registry.measurements(TARGET.fingerprint, KEYS[1])) == added[1::3]


def test_reading_measurements_holds_up_no_writer(registry, path):
    registry.add_batch([measurement(KEYS[0])] * 3, [])
    reading = registry.measurements(TARGET.fingerprint)
    next(reading)
    with Registry.open(path, busy_seconds=0.1) as other:
        other.add_batch([measurement(KEYS[0])], [])
    assert len(list(reading)) == 3  # the new one is seen, too


def test_a_batch_is_added_whole_or_not_at_all(registry):
    unknown = key(99)
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        registry.add_batch([measurement(KEYS[0])], [record(KEYS[0], 1e-3), record(unknown, 1e-3)])
    assert registry.trials([KEYS[0]]) == {KEYS[0]: 0}
    assert registry.best([KEYS[0]], TVM) == {}


def test_an_impossible_latency_is_refused(registry):
    with pytest.raises(sqlite3.IntegrityError, match="latency"):
        registry.add_batch([], [record(KEYS[0], 0.0)])


def test_query_lists_the_best_of_each_task(registry):
    registry.add_batch(
        [measurement(KEYS[0]), measurement(KEYS[0], error="crash")],
        [
            record(KEYS[0], 2e-3),
            record(KEYS[0], 1e-3, created="2026-02-01T00:00:00Z"),
            record(KEYS[2], 5e-3),
        ],
    )
    registry.add_model("ab" * 32, "resnet", [(KEYS[0], 3)])
    found = registry.query()
    assert [row["op"] for row in found] == ["conv2d", "matmul"]
    assert found[0]["latency_ms"] == pytest.approx(1.0)
    assert found[0]["shapes"] == [[1, 3, 224, 224], [64, 3, 7, 7]]
    assert found[0]["dtypes"] == ["float32", "float32"]
    assert (found[0]["trials"], found[0]["target"], found[0]["tvm"]) == (2, "board", TVM)
    assert registry.query(op="matmul") == found[1:]
    assert registry.query(target="board") == found
    assert registry.query(target=TARGET.fingerprint[:8]) == found
    assert registry.query(target="elsewhere") == []
    assert registry.query(model="resnet") == registry.query(model="abab") == found[:1]
    assert registry.query(since="2026-02-01") == found[:1]
    assert registry.query(op="matmul", model="resnet") == []
    assert registry.query(limit=1) == found[:1]


def test_the_newest_name_of_a_target_is_listed(registry):
    renamed = dataclasses.replace(TARGET, name="rack-7", memory_gbs=9.0)
    registry.add_target(renamed)
    assert [row["target"] for row in registry.stats()["per_target"]] == ["rack-7"]


def test_stats(registry, path):
    registry.add_batch(
        [measurement(KEYS[0]), measurement(KEYS[0], error="build"), measurement(KEYS[1])],
        [record(KEYS[0], 1e-3)],
    )
    registry.add_model("a" * 64, "first", [(KEYS[0], 2), (KEYS[1], 1)])
    registry.add_model("b" * 64, "second", [(KEYS[0], 1)])
    registry.add_model("c" * 64, "third", [(KEYS[0], 1)])
    registry.add_build(build("out/first.so", "a" * 64, "2026-01-31"))
    stats = registry.stats()
    counts = {name: value for name, value in stats.items() if not isinstance(value, list)}
    assert counts == {
        "workloads": 3,
        "records": 1,
        "measurements": 3,
        "failures": 1,
        "models": 3,
        "builds": 1,
        "trials_saved": 4,  # the two trials of the first task, for two further models
        "bytes": path.stat().st_size,
    }
    (per_target,) = stats["per_target"]
    assert (per_target["measurements"], per_target["records"], per_target["tasks"]) == (3, 1, 1)
    covered = [(row["model"], row["tasks"], row["covered"]) for row in stats["per_model"]]
    assert covered == [("first", 2, 1), ("second", 1, 1), ("third", 1, 1)]


def test_builds_come_back_the_newest_first(registry):
    first = build("out/first.so", "a" * 64, NOON)
    second = build("out/second.so", "a" * 64, LATER, tuned_ms=None, untuned_ms=None, name="new")
    for one in (second, first):
        registry.add_build(one)
    assert registry.builds() == [second, first]
    assert registry.builds(1) == [second]
    (name,) = registry.rows("SELECT name FROM models")  # as its first build called it
    assert name == {"name": "new"}


def test_every_end_of_a_search_comes_back_with_its_rules(registry):
    ends = [
        SearchEnd(KEYS[0], TVM, "ansor", 64, "limit", 64, NOON, "e" * 64),
        SearchEnd(KEYS[0], TVM, "ansor", 70, "limit", 128, LATER),
        SearchEnd(KEYS[1], "0.26.0", "ansor", 64, "limit", 64, NOON, "e" * 64),
    ]
    registry.add_searches(ends)
    assert registry.ends(KEYS[0]) == ends[:2]
    assert registry.ends(KEYS[1]) == ends[2:]
    assert registry.ends(KEYS[2]) == []


def test_noting_a_model_again_replaces_its_tasks(registry):
    registry.add_model("a" * 64, "first", [(KEYS[0], 2), (KEYS[1], 1)])
    registry.add_model("a" * 64, "renamed", [(KEYS[1], 5)])
    (row,) = registry.stats()["per_model"]
    assert (row["model"], row["tasks"]) == ("renamed", 1)


def test_seconds_per_trial_is_the_mean_of_all_tunings(registry):
    assert registry.seconds_per_trial(TARGET.fingerprint) is None
    registry.add_tuning(TARGET.fingerprint, "metaschedule", 10, 20.0, "2026-01-31T12:00:00Z")
    registry.add_tuning(TARGET.fingerprint, "metaschedule", 30, 20.0, "2026-01-31T13:00:00Z")
    registry.add_tuning(TARGET.fingerprint, "metaschedule", 0, 5.0, "2026-01-31T14:00:00Z")
    assert registry.seconds_per_trial(TARGET.fingerprint) == pytest.approx(1.0)


def test_what_was_added_is_there_after_reopening(path):
    with Registry.open(path) as first:
        first.add_target(TARGET)
        first.add_workloads(WORKLOADS)
        first.add_batch([], [record(KEYS[0], 1e-3)])
    with Registry.open(path, write=False) as second:
        assert second.best(KEYS, TVM) == {KEYS[0]: record(KEYS[0], 1e-3)}
        assert second.verify() == []


def test_reading_a_registry_that_is_not_there_makes_none(path):
    with Registry.open(path, write=False) as empty:
        assert empty.best(KEYS, TVM) == {}
        assert empty.query() == []
        assert empty.stats()["bytes"] == 0
        with pytest.raises(RegistryError, match="readonly"):
            empty.add_target(TARGET)
    assert not path.parent.exists()


def test_a_reader_cannot_write(registry, path):
    reader = Registry.open(path, write=False)
    with reader, pytest.raises(RegistryError, match="not writable"):
        reader.add_workloads([workload(7)])


def test_the_file_says_what_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(connect, "SYNCHRONOUS", unsynced.AS_SHIPPED)
    with Registry.open(tmp_path / "as shipped.db") as registry:

        def pragma(name):
            return registry._connection.execute(f"PRAGMA {name}").fetchone()[0]

        assert pragma("application_id").to_bytes(4, "big") == b"AnsD"
        assert pragma("user_version") == SCHEMA_VERSION
        assert (pragma("foreign_keys"), pragma("synchronous")) == (1, 2)
        assert pragma("journal_mode") == "delete"


def test_the_best_is_found_by_index_alone(registry):
    plan = registry.rows(f"EXPLAIN QUERY PLAN {lookups.TOP}", ("a", "b", "c", 1))
    steps = [row["detail"].split(" (")[0] for row in plan]
    assert "SEARCH r USING COVERING INDEX records_best" in steps
    assert "SEARCH b USING PRIMARY KEY" in steps  # not: all records of the task for each of them
    assert not [step for step in steps if step.startswith("SCAN") and step != "SCAN best"]


def test_traces_lie_packed_with_a_dictionary_that_never_changes():
    digest = "a02dd50a812fb520e932c4188b3289e6668e8790f661634744e3e1b17fb018b5"
    assert sha256(schema.dictionary().decode()) == digest
    trace = schema.dictionary()[:3000].decode()
    blob = schema.packed(trace)
    assert schema.unpacked(blob) == trace
    assert len(blob) < len(zlib.compress(trace.encode())) / 3
    with pytest.raises(ValueError, match="too long"):
        schema.unpacked(schema.packed("0" * 100_000), most=1000)
    for broken in (blob[:-1], blob + b"x", blob[:-4] + b"abcd", b""):
        with pytest.raises((zlib.error, ValueError)):
            schema.unpacked(broken)


def test_opening_a_registry_loads_nothing_heavy(registry, path):
    code = (
        "import sys; from pathlib import Path; from ansor_deploy.registry.store import Registry; "
        "from ansor_deploy.target import load_target; from ansor_deploy.project import Project; "
        "load_target('host', Project().target_path()); "
        "Registry.open(Path(sys.argv[1])).stats(); "
        "print({'tvm', 'numpy', 'xgboost', 'onnx', 'sqlite_utils', 'rich'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
