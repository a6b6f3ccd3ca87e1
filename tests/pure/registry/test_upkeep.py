"""`registry gc` drops what no build asks for, and `registry vacuum` gives its space back."""

import pytest
from helpers.cli_inside import answer, program
from helpers.registry_samples import TVM, build, fill, key, record

from ansor_deploy.registry.store import Registry

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
    assert dropped == {"dry_run": False, "records": 840, "builds": 0}
    sizes = answer(path.parent, "registry", "vacuum", *where)
    assert sizes["after"] == path.stat().st_size < sizes["before"]
    assert program(path.parent, "registry", "vacuum", *where).stdout.startswith(f"{path}: 0.")
    assert program(path.parent, "registry", "verify", *where).stdout == f"{path} is whole\n"
