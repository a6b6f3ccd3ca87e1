"""`registry gc` drops what no build asks for, and `registry vacuum` gives its space back."""

from dataclasses import replace
from datetime import datetime, timezone

import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.registry_samples import TVM, build, fill, key, provenance, record

from ansor_deploy.registry.record import Measurement, SearchEnd
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.words import size_text

DIGEST = "ab" * 32
NOON = "2026-01-31T12:00:00+00:00"


@pytest.fixture
def path(tmp_path):
    """Fifty records of each of twenty tasks."""
    place = tmp_path / "registry.db"
    with Registry.open(place) as registry:
        fill(registry, 1000)
    return place


def test_the_best_eight_of_each_task_are_kept(path):
    with Registry.open(path) as registry:
        best = {key(n): registry.top(key(n), TVM, 8) for n in range(20)}
        assert registry.collect(dry_run=True) == {"records": 840, "builds": 0}
        assert registry.stats()["records"] == 1000
        assert registry.collect(dry_run=False) == {"records": 840, "builds": 0}
        assert {key(n): registry.top(key(n), TVM, 99) for n in range(20)} == best
        assert registry.collect(dry_run=False) == {"records": 0, "builds": 0}
        assert registry.stats()["measurements"] == 1000
        assert registry.verify() == []


def test_no_loser_outlives_the_one_that_beat_it(path):
    with Registry.open(path) as registry:
        first, second, third, *_ = registry.top(key(0), TVM, 3)
        registry.add_contest(second, [first.id], NOON)
        registry.add_contest(third, [second.id], NOON)
        registry.collect(dry_run=False)
        kept = registry.top(key(0), TVM, 99)
        assert kept[0] == third
        assert first not in kept
        assert second not in kept
        assert registry.verify() == []


def test_of_records_that_all_were_beaten_the_best_is_kept(path):
    with Registry.open(path) as registry:
        one, two, three = (record(key(0), seconds) for seconds in (1e-6, 2e-6, 3e-6))
        others = [found.id for found in registry.top(key(0), TVM, 99)]
        registry.add_contest(one, others, NOON)
        registry.add_contest(two, [one.id], NOON)
        registry.add_contest(three, [two.id], NOON)
        registry.add_contest(one, [three.id], NOON)
        registry.collect(dry_run=False)
        assert registry.top(key(0), TVM, 99) == [one]
        assert registry.verify() == []


def rows(path, table):
    with Registry.open(path, write=False) as registry:
        return len(registry.rows(f"SELECT * FROM {table}"))  # noqa: S608


def test_a_record_is_forgotten_with_its_contests_and_its_trials(path):
    with Registry.open(path) as registry:
        first, second, *_ = registry.top(key(0), TVM, 2)
        registry.add_contest(second, [first.id], NOON)
        registry.add_batch([Measurement(key(0), first.trace, (1.0,), "", "", provenance())], [])
    words = ("registry", "forget", second.id[:12], "--registry", path)
    says = {"records": 1, "measurements": 0, "searches": 0}
    assert answer(path.parent, *words, "--dry-run") == {"dry_run": True, **says}
    assert answer(path.parent, *words) == {"dry_run": False, **says}
    assert (rows(path, "records"), rows(path, "beaten")) == (999, 0)
    found = answer(path.parent, "registry", "forget", first.id, "--registry", path)
    assert found == {"dry_run": False, "records": 1, "measurements": 1, "searches": 0}
    with Registry.open(path, write=False) as registry:
        assert {first.id, second.id}.isdisjoint(one.id for one in registry.top(key(0), TVM, 99))
        assert registry.verify() == []


def test_a_task_is_forgotten_with_the_end_of_its_search(path):
    with Registry.open(path) as registry:
        end = SearchEnd(key(0), TVM, "ansor", 64, "limit", 64, NOON)
        registry.add_searches([end, replace(end, key=key(1))])
    found = answer(path.parent, "registry", "forget", key(0).workload[:8], "--registry", path)
    assert found == {"dry_run": False, "records": 50, "measurements": 50, "searches": 1}
    assert rows(path, "searches") == 1


def test_a_device_is_forgotten_with_all_that_it_measured(path):
    other = record(key(0), 1.0)
    with Registry.open(path) as registry:
        away = replace(other, provenance=replace(other.provenance, device="board-7"))
        registry.add_batch([], [away])
    words = ("registry", "forget", "--device", "board-7", "--registry", path)
    assert answer(path.parent, *words)["records"] == 1
    assert rows(path, "records") == 1000


def test_what_others_say_is_forgotten_and_nothing_else(path):
    with Registry.open(path) as registry:
        end = SearchEnd(key(0), TVM, "ansor", 64, "limit", 64, NOON)
        registry.add_searches([end, replace(end, reason="goal", claimed=True)])
        registry.add_batch([], [replace(record(key(0), 1.0), claimed=True)])
    found = answer(path.parent, "registry", "forget", "--claims", "--registry", path)
    assert found == {"dry_run": False, "records": 1, "measurements": 0, "searches": 1}
    assert (rows(path, "records"), rows(path, "searches")) == (1000, 1)


@pytest.mark.parametrize("words", [(), ("abcd", "--device", "x"), ("abcd", "--claims"), ("cafe",)])
def test_what_is_to_be_forgotten_is_named(path, words):
    refused(program(path.parent, "registry", "forget", *words, "--registry", path), 2)
    assert rows(path, "records") == 1000


def test_what_was_not_used_for_long_goes_with_all_that_was_learnt_of_it(path):
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    with Registry.open(path) as registry:
        registry.add_batch([], [record(key(0), 1e-6, created=now)])  # that it was measured today
        registry.add_model(DIGEST, "resnet", [(key(1), 1)])
        registry.add_build(build(path.parent / "a.so", DIGEST, now))
        loser = registry.top(key(2), TVM, 2)[1].id
        registry.add_contest(registry.top(key(2), TVM, 1)[0], [loser], NOON)
    words = ("registry", "gc", "--keep", "30d", "--registry", path)
    assert answer(path.parent, *words, "--dry-run")["tasks"] == 18
    assert rows(path, "measurements") == 1000
    assert answer(path.parent, *words)["tasks"] == 18
    with Registry.open(path, write=False) as registry:
        assert {row["workload"] for row in registry.query()} == {key(n).workload for n in (0, 1)}
        assert registry.verify() == []
    assert (rows(path, "measurements"), rows(path, "beaten")) == (100, 0)
    assert answer(path.parent, *words)["tasks"] == 0


def test_a_registry_is_no_larger_than_it_may_be(path):
    before = path.stat().st_size
    most = before // 4
    said = program(path.parent, "registry", "gc", "--max", f"{most}B", "--registry", path)
    assert f"{path} has " in said.stdout
    assert path.stat().st_size <= most
    assert 0 < rows(path, "measurements") < 1000
    nothing = answer(path.parent, "registry", "gc", "--max", "1kB", "--registry", path)
    assert rows(path, "records") == rows(path, "measurements") == 0 < nothing["bytes"]
    refused(program(path.parent, "registry", "gc", "--keep", "soon", "--registry", path), 2, "30d")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"SQLite format 3", "it is too small to be one"),
        (b"no database " * 99, "it is not a registry (file is not a database)"),
    ],
)
def test_damage_is_said_once(tmp_path, content, said):
    (tmp_path / "r.db").write_bytes(content)
    result = program(tmp_path, "registry", "verify", "--registry", "r.db")
    refused(result, 8, f"the registry r.db is damaged: {said}")
    assert result.stderr.count("is damaged") == 1


def test_no_registry_is_neither_whole_nor_made(tmp_path):
    words = ("registry", "verify", "--registry", "nosuch.db")
    refused(program(tmp_path, *words), 2, "there is no registry nosuch.db")
    refused(program(tmp_path, *words, "--repair"), 2, "there is no registry nosuch.db")
    for one in ("gc", "vacuum"):
        words = ("registry", one, "--registry", "nosuch.db")
        refused(program(tmp_path, *words), 2, "there is no registry nosuch.db")
    assert not (tmp_path / "nosuch.db").exists()


def test_the_newest_entry_of_each_build_is_kept(path, tmp_path):
    with Registry.open(path) as registry:
        registry.add_model(DIGEST, "resnet", [])
        for day, name in enumerate(("a.so", "b.so", "a.so")):
            registry.add_build(build(tmp_path / name, DIGEST, f"2026-01-3{day}"))
        assert registry.collect(dry_run=False)["builds"] == 1
        left = registry.rows("SELECT created FROM builds ORDER BY id")
    assert [row["created"] for row in left] == ["2026-01-31", "2026-01-32"]


def test_the_commands(path):
    where = ("--registry", path)
    would = program(path.parent, "registry", "gc", "--dry-run", *where)
    assert would.stdout == "would drop 840 records and 0 builds\n"
    dropped = answer(path.parent, "registry", "gc", *where)
    assert (dropped["dry_run"], dropped["records"], dropped["builds"]) == (False, 840, 0)
    sizes = answer(path.parent, "registry", "vacuum", *where)
    assert sizes["after"] == path.stat().st_size < sizes["before"]
    size = size_text(path.stat().st_size)
    again = program(path.parent, "registry", "vacuum", *where)
    assert again.stdout == f"{path}: {size} before, {size} after\n"
    assert program(path.parent, "registry", "verify", *where).stdout == f"{path} is whole\n"
