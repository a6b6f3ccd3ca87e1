"""Which record beat which travels with the records, and every union of registries agrees on it."""

import shutil
import sqlite3
from datetime import datetime, timedelta, timezone
from itertools import permutations

import pytest
from helpers.foreign import TVM, content, exported, lines, parts, record, registry

from ansor_deploy.errors import RegistryError
from ansor_deploy.registry.bundle import read_bundle
from ansor_deploy.registry.exchange import export_file, import_file, merge_file, pull, push
from ansor_deploy.registry.record import Contest
from ansor_deploy.registry.store import Registry
from ansor_deploy.registry.transfer import Taken
from ansor_deploy.system.digest import canonical_json

NOON, LATER = "2026-01-31T12:00:00+00:00", "2026-02-01T12:00:00+00:00"
LUCKY, STEADY, OTHER = record(64, 1e-3), record(64, 2e-3), record(128)


def compared(path, loser, winner, created=NOON):
    """A registry with two records of a task, one of which has beaten the other."""
    for one in (loser, winner):
        registry(path, 64, seconds=one.seconds[0])
    with Registry.open(path) as store:
        store.add_contest(winner, [loser.id], created)
    return path


def line(**changes):
    fields = {"loser": LUCKY.id, "winner": STEADY.id, "created": NOON, **changes}
    return canonical_json({"contest": fields})


def best(path):
    with Registry.open(path, write=False) as store:
        return store.best([LUCKY.key], TVM)[LUCKY.key]


RECORDS = lines(parts(64, 1e-3), parts(64, 2e-3), parts(128))


def test_a_contest_is_read_and_written_back_the_same():
    good = content(sorted([*RECORDS, line()]))
    found = read_bundle(good, "good")
    assert found.contests == {Contest(LUCKY.id, STEADY.id, NOON)}
    assert found.to_bytes() == good


FUTURE = (datetime.now(timezone.utc) + timedelta(days=3)).isoformat(timespec="seconds")
HOSTILE = {
    "itself": ({"winner": LUCKY.id}, "against itself"),
    "unknown": ({"winner": "0" * 64}, "not in the bundle"),
    "another task's": ({"winner": OTHER.id}, "different tasks"),
    "no id": ({"loser": "records"}, "not of the form"),
    "a number": ({"loser": 5}, "not of the form"),
    "no time": ({"created": "\x1b[2J"}, "not of the form"),
    "the future": ({"created": FUTURE}, "is to come"),
    "more": ({"latency": 1.0}, "latency"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_contests_are_refused(name):
    changes, reason = HOSTILE[name]
    with pytest.raises(RegistryError) as caught:
        read_bundle(content(sorted([*RECORDS, line(**changes)])), "hostile.jsonl")
    assert reason in caught.value.message
    assert "nothing of it was taken" in caught.value.message
    assert caught.value.message.replace("\n", "").isprintable()


def test_the_best_is_the_same_elsewhere(tmp_path):
    mine, theirs = compared(tmp_path / "mine.db", LUCKY, STEADY), tmp_path / "theirs.db"
    export_file(mine, tmp_path / "out.jsonl")
    assert import_file(theirs, tmp_path / "out.jsonl") == Taken(2, 0, 1)
    assert import_file(theirs, tmp_path / "out.jsonl") == Taken(0, 2, 0)
    assert best(theirs) == best(mine) == STEADY
    assert exported(theirs) == exported(mine)


def test_a_comparison_counts_though_the_clock_was_set_back(tmp_path):
    mine = compared(tmp_path / "mine.db", LUCKY, STEADY, FUTURE)
    assert best(mine) == STEADY
    assert best(compared(mine, STEADY, LUCKY)) == LUCKY


def test_merging_in_every_order_is_the_same_though_comparisons_disagree(tmp_path):
    third = record(64, 3e-3)
    files = [
        compared(tmp_path / "0.db", LUCKY, STEADY),
        compared(tmp_path / "1.db", STEADY, LUCKY, LATER),
        compared(tmp_path / "2.db", STEADY, third),
        compared(tmp_path / "3.db", LUCKY, STEADY, "2026-01-30T12:00:00+00:00"),
        compared(tmp_path / "4.db", third, STEADY),
    ]
    outcomes = set()
    for number, order in enumerate(permutations(files)):
        union = tmp_path / f"union-{number}.db"
        shutil.copy(order[0], union)
        for other in order[1:]:
            merge_file(union, other)
        outcomes.add((exported(union), best(union).id))
        union.unlink()
    ((whole, winner),) = outcomes
    assert winner == LUCKY.id
    assert whole.count(b'{"contest"') == 4


def test_a_comparison_of_known_records_is_pushed_with_them(tmp_path):
    place = (tmp_path / "place").as_uri()
    mine, theirs = tmp_path / "mine.db", tmp_path / "theirs.db"
    registry(registry(mine, 64, 128), 64, seconds=2e-3)
    assert push(mine, place).records == 3
    assert pull(theirs, place).taken == Taken(3, 0)
    assert best(theirs) == LUCKY
    with Registry.open(mine) as store:
        store.add_contest(STEADY, [LUCKY.id], NOON)
    pushed = push(mine, place)
    assert pushed.records == 2
    alone = tmp_path / "place" / pushed.name
    assert import_file(tmp_path / "new.db", alone) == Taken(2, 0, 1)
    assert pull(theirs, place).taken == Taken(0, 5, 1)
    assert best(theirs) == STEADY
    assert push(theirs, place).name == push(mine, place).name == ""


def test_a_contest_stays_at_home_with_its_record(tmp_path):
    mine = compared(tmp_path / "mine.db", LUCKY, STEADY)
    with sqlite3.connect(mine) as raw:
        raw.execute("DROP TRIGGER records_are_immutable")
        raw.execute("UPDATE records SET proof = '{}' WHERE id = ?", (LUCKY.id,))
    raw.close()
    given = export_file(mine, tmp_path / "out.jsonl")
    (left_out,) = given.left_out
    assert "no proof" in str(left_out)
    assert import_file(tmp_path / "new.db", tmp_path / "out.jsonl") == Taken(1, 0, 0)


def test_a_registry_with_a_contest_of_nothing_is_refused(tmp_path):
    other = compared(tmp_path / "other.db", LUCKY, STEADY)
    with sqlite3.connect(other) as raw:
        raw.execute("INSERT INTO beaten VALUES (?, ?, ?)", ("0" * 64, STEADY.id, NOON))
    raw.close()
    with pytest.raises(RegistryError, match="not in the bundle"):
        merge_file(tmp_path / "mine.db", other)
    assert not (tmp_path / "mine.db").exists()
