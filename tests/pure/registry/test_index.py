"""The index of a layer: what of it passes the firewall, and when."""

import sqlite3
from contextlib import closing

import pytest
from helpers.foreign import TVM, bundle, content, lines, parts, record, registry
from helpers.layers import KEY, KEYS, NOON, ids, warnings_of

from ansor_deploy.registry import bundle as bundles
from ansor_deploy.registry import index as indexing
from ansor_deploy.registry.exchange import push
from ansor_deploy.registry.layer import Layer
from ansor_deploy.registry.remote import name_of
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.digest import canonical_json

pytestmark = pytest.mark.usefixtures("cache")


def test_of_many_records_only_those_that_count_pass_the_firewall(mine, tmp_path, monkeypatch):
    times = [n * 1e-3 for n in range(1, 9)]
    for seconds in times:
        theirs = registry(tmp_path / "theirs.db", 64, seconds=seconds)
    with Registry.open(theirs) as opened:  # the seventh has beaten the first
        opened.add_contest(record(64, 7e-3), [record(64).id], NOON)
    push(theirs, str(tmp_path / "team"))
    passed = []
    check = bundles.check_record
    monkeypatch.setattr(
        bundles, "check_record", lambda name, *rest: passed.append(name) or check(name, *rest)
    )
    expected = {record(64, n * 1e-3).id for n in (1, 2, 3, 4, 7)}
    passed.clear()
    for _ in range(2):
        assert warnings_of(mine, Layer(str(tmp_path / "team"))) == []
        assert (len(passed), set(passed)) == (5, expected)
    assert ids(mine) == {record(64, n * 1e-3).id for n in (2, 3, 4)}


def beaten_by_the_slowest(mine, tmp_path, count):
    """A team's folder with records of a task, of which the slowest has beaten all others."""
    names = [record(64, n * 1e-3) for n in range(1, count + 1)]
    for one in names:
        theirs = registry(tmp_path / "theirs.db", 64, seconds=one.seconds[0])
    with Registry.open(theirs) as opened:
        opened.add_contest(names[-1], [one.id for one in names[:-1]], NOON)
    push(theirs, str(tmp_path / "team"))
    return Layer(str(tmp_path / "team")), [one.id for one in names]


def test_of_many_beaten_records_the_fastest_pass_with_who_has_beaten_them(
    mine, tmp_path, monkeypatch
):
    layer, (*losers, winner) = beaten_by_the_slowest(mine, tmp_path, 9)
    monkeypatch.setattr(indexing, "MOST_ASKED", 2)
    passed = set()
    check = bundles.check_record
    monkeypatch.setattr(
        bundles, "check_record", lambda name, *rest: passed.add(name) or check(name, *rest)
    )
    passed.clear()
    assert warnings_of(mine, layer) == []
    assert passed == {*losers[:2], winner}
    assert mine.best([KEY], TVM)[KEY].id == winner


def test_who_has_passed_passes_again_with_another_that_it_has_beaten(mine, tmp_path, monkeypatch):
    layer, (*_, winner) = beaten_by_the_slowest(mine, tmp_path, 4)
    for most in (1, 2):
        monkeypatch.setattr(indexing, "MOST_ASKED", most)
        assert warnings_of(mine, layer) == []
        assert mine.best([KEY], TVM)[KEY].id == winner


def test_of_many_versions_of_tvm_a_build_asks_for_a_few(mine, tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "MOST_ASKED", 3)
    several = [parts(64, n * 1e-3) for n in range(1, 9)]
    for n, one in enumerate(several):
        one["record"]["provenance"]["tvm"] = f"0.{n}.0"
    (tmp_path / "team").mkdir()
    data = content(lines(*several))
    (tmp_path / "team" / name_of(data)).write_bytes(data)
    for _ in range(2):
        assert warnings_of(mine, Layer(str(tmp_path / "team"))) == []
        assert len(ids(mine)) == 3


def spoilt(team, spoil):
    """Puts a bundle into the folder with a good record of size 64 and a spoilt one of size 128."""
    good, bad = parts(64, 2e-3), parts(128)
    data = content(sorted({*lines(good), *spoil(lines(bad), bad)}))
    (team / name_of(data)).write_bytes(data)


def evil(entries, bad):
    bad["record"]["trace"] = '[[["EnterPostproc",[],[],[]],["Evil",[],[],[]]],[]]'
    return lines(bad)


def forged(entries, bad):
    """A line that says of itself to be another record than it is."""
    return [line.replace(record(128).id, "0" * 64) for line in entries]


def foreign(entries, bad):
    """A comparison of records of two tasks."""
    names = {"loser": record(128).id, "winner": record(64, 2e-3).id}
    return [*entries, canonical_json({"contest": {"created": NOON, **names}})]


def renamed(entries, bad):
    """A workload of which the text is another."""
    return [line.replace("v1[v3] = T.max", "v1[v3] = T.min") for line in entries]


@pytest.mark.parametrize("spoil", [evil, forged, foreign, renamed])
def test_a_line_is_refused_with_its_bundle_once_it_is_asked_for(mine, team, spoil):
    spoilt(team, spoil)
    mine.add_workloads(list(bundle(128).workloads.values()))
    with mine.copy() as other:
        assert warnings_of(other, Layer(str(team)), keys=[KEY]) == []
        assert ids(other) == {record(64).id, record(64, 2e-3).id}
    for _ in range(2):
        (warned,) = warnings_of(mine, Layer(str(team)))
        assert "is refused" in warned
        assert (ids(mine), ids(mine, KEYS[1])) == ({record(64).id}, {record(128).id})


def test_another_build_may_have_refused_a_bundle_meanwhile(mine, team, monkeypatch):
    spoilt(team, evil)
    mine.add_workloads(list(bundle(128).workloads.values()))
    check, layer = indexing._checked, Layer(str(team))

    def late(index, *words):
        monkeypatch.setattr(indexing, "_checked", check)
        with mine.copy() as other:
            assert len(warnings_of(other, layer)) == 1
        return check(index, *words)

    monkeypatch.setattr(indexing, "_checked", late)
    warnings_of(mine, layer)
    assert (ids(mine), ids(mine, KEYS[1])) == ({record(64).id}, {record(128).id})


@pytest.mark.parametrize("damage", [b"", b"no registry" * 99, None])
def test_a_damaged_index_is_made_anew(mine, team, damage, cache):
    warnings_of(mine, Layer(str(team)), keys=[])
    (index,) = cache.glob("*.db")
    if damage is None:
        with closing(sqlite3.connect(index)) as raw:
            raw.execute("DROP TABLE taken")
    else:
        index.write_bytes(damage)
    assert warnings_of(mine, Layer(str(team))) == []
    assert ids(mine) == {record(64).id}


def test_an_index_whose_rows_are_damaged_costs_one_warning(mine, team, cache):
    with mine.copy() as other:
        warnings_of(other, Layer(str(team)))
    (index,) = cache.glob("*.db")
    with closing(sqlite3.connect(index)) as raw, raw:
        raw.execute("DROP TRIGGER records_are_immutable")
        raw.execute("UPDATE records SET seconds = '[1.0]'")
    (warned,) = warnings_of(mine, Layer(str(team)))
    assert "damaged" in warned
    assert ids(mine) == set()
    assert warnings_of(mine, Layer(str(team))) == []
    assert ids(mine) == {record(64).id}
