"""Layers below the registry: read, never written, and never in the way of a build."""

import os
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler

import pytest
from helpers.cli_process import everything
from helpers.foreign import TVM, bundle, content, lines, parts, record, registry
from helpers.layers import KEY, KEYS, NOON, ids, warnings_of
from helpers.registry_samples import TARGET
from helpers.ssh_keys import make_key
from helpers.web import serving

from ansor_deploy.project import Project
from ansor_deploy.registry import layers as layering
from ansor_deploy.registry.exchange import export_file, push
from ansor_deploy.registry.layer import Layer, layers_of
from ansor_deploy.registry.layers import bring_in, indexes, tiers
from ansor_deploy.registry.remote import mirror, name_of
from ansor_deploy.registry.signing import load_signer
from ansor_deploy.registry.store import Registry
from ansor_deploy.system import worker

pytestmark = pytest.mark.usefixtures("cache")


def test_what_the_registry_lacks_is_brought_in(mine, team):
    assert warnings_of(mine, Layer(str(team))) == []
    assert mine.best(KEYS, TVM) == {KEY: record(64)}
    assert [(end.tvm, end.enough_for) for end in mine.ends(KEY)] == [(TVM, 64)]
    assert mine.stats()["workloads"] == 1
    warnings_of(mine, Layer(str(team)))
    assert (mine.stats()["records"], len(mine.ends(KEY))) == (1, 1)


def test_all_that_is_brought_in_is_written_at_once(mine, team):
    """The end of each transaction waits for the disk. SQLite counts them in a file's header."""
    mine.add_workloads(list(bundle(128).workloads.values()))
    before = written(mine)
    warnings_of(mine, Layer(str(team)))
    assert set(mine.best(KEYS, TVM)) == set(KEYS)
    assert written(mine) == before + 1
    warnings_of(mine, Layer(str(team)))
    assert written(mine) == before + 1


def written(store):
    """How many transactions have written to a registry."""
    return int.from_bytes(store.path.read_bytes()[24:28], "big")


def test_only_what_is_asked_for_is_brought_in(mine, team):
    mine.add_workloads(list(bundle(128).workloads.values()))
    warnings_of(mine, Layer(str(team)), keys=[KEYS[1]])
    assert set(mine.best(KEYS, TVM)) == {KEYS[1]}


def test_a_layer_may_be_a_file(mine, tmp_path):
    export_file(registry(tmp_path / "theirs.db", 64), tmp_path / "records.jsonl.zst")
    assert warnings_of(mine, Layer(str(tmp_path / "records.jsonl.zst"))) == []
    assert mine.best(KEYS, TVM) == {KEY: record(64)}


def test_the_best_of_all_layers_counts(mine, team, tmp_path):
    mine.add_batch([], [record(64, 5e-3)])
    push(registry(tmp_path / "other.db", 64, seconds=1e-4), str(tmp_path / "other"))
    warnings_of(mine, Layer(str(tmp_path / "other")), Layer(str(team)))
    found = mine.top(KEY, TVM, 9)
    assert found == [record(64, 1e-4), record(64), record(64, 5e-3)]


def test_only_the_best_few_are_brought_in(mine, tmp_path):
    times = [n * 1e-3 for n in range(1, 7)]
    for seconds in times:
        theirs = registry(tmp_path / "theirs.db", 64, seconds=seconds)
    push(theirs, str(tmp_path / "team"))
    assert warnings_of(mine, Layer(str(tmp_path / "team"))) == []
    assert mine.top(KEY, TVM, 9) == [record(64, seconds) for seconds in times[:3]]


def test_behind_what_was_beaten_here_the_next_is_brought_in(mine, tmp_path):
    times = [n * 1e-3 for n in range(1, 6)]
    for seconds in times:
        theirs = registry(tmp_path / "theirs.db", 64, seconds=seconds)
    push(theirs, str(tmp_path / "team"))
    warnings_of(mine, Layer(str(tmp_path / "team")))
    mine.add_contest(record(64, 9e-3), [record(64, seconds).id for seconds in times[:3]], NOON)
    warnings_of(mine, Layer(str(tmp_path / "team")))
    assert {record(64, seconds).id for seconds in times} < ids(mine)


def test_a_comparison_on_this_machine_wins(mine, team):
    slower = record(64, 5e-3)
    warnings_of(mine, Layer(str(team)))
    mine.add_contest(slower, [record(64).id], "2026-11-20T12:00:00Z")
    warnings_of(mine, Layer(str(team)))
    assert mine.best([KEY], TVM) == {KEY: slower}


def test_what_was_beaten_there_stays_there(mine, tmp_path):
    theirs = registry(tmp_path / "theirs.db", 64)
    with Registry.open(theirs) as opened:
        opened.add_contest(record(64, 5e-3), [record(64).id], NOON)
    export_file(theirs, tmp_path / "out.jsonl")
    assert warnings_of(mine, Layer(str(tmp_path / "out.jsonl"))) == []
    assert ids(mine) == {record(64, 5e-3).id}


def test_no_layer_is_written_to(mine, team):
    before = everything(team)
    warnings_of(mine, Layer(str(team)))
    assert everything(team) == before


def test_an_unchanged_bundle_is_not_read_again(mine, team, tmp_path):
    warnings_of(mine, Layer(str(team)))
    for path in team.iterdir():
        path.write_bytes(b"what nobody looks at")
    with Registry.open(tmp_path / "new.db") as other:
        other.add_target(TARGET)
        other.add_workloads(list(bundle(64).workloads.values()))
        assert warnings_of(other, Layer(str(team))) == []
        assert ids(other) == {record(64).id}


def test_what_is_pushed_later_is_brought_in(mine, team, tmp_path):
    warnings_of(mine, Layer(str(team)))
    push(registry(tmp_path / "theirs.db", 64, seconds=1e-4), str(team))
    assert len(list(team.iterdir())) == 2
    assert warnings_of(mine, Layer(str(team))) == []
    assert mine.best([KEY], TVM) == {KEY: record(64, 1e-4)}


def test_what_was_withdrawn_is_brought_in_no_more(mine, team, tmp_path):
    warnings_of(mine, Layer(str(team)), keys=[])
    shutil.rmtree(team)
    push(registry(tmp_path / "other.db", 64, seconds=5e-3), str(team))
    warnings_of(mine, Layer(str(team)))
    assert ids(mine) == {record(64, 5e-3).id}


def test_uploads_that_did_not_end_are_waited_for(mine, team):
    (path,) = team.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert warnings_of(mine, Layer(str(team))) == []
    assert ids(mine) == set()
    path.write_bytes(whole)
    warnings_of(mine, Layer(str(team)))
    assert ids(mine) == {record(64).id}


@pytest.mark.parametrize("wrong", ["team.jsonl", f"{'0' * 64}.jsonl"])
def test_a_bundle_under_a_wrong_name_is_named_with_the_right_one(mine, team, wrong):
    (path,) = team.iterdir()
    path.rename(team / wrong)
    (team / "other.jsonl").write_text('{"no": "bundle"}\n')
    (warned,) = warnings_of(mine, Layer(str(team)))
    assert str(team / wrong) in warned
    assert path.name in warned
    assert ids(mine) == set()


def test_a_url_names_the_bundles_under_wrong_names(mine, team, server):
    (path,) = team.iterdir()
    path.rename(team / "team.jsonl")
    (warned,) = warnings_of(mine, Layer(server))
    assert f"{server}/team.jsonl" in warned
    assert path.name in warned


def test_what_is_hostile_is_named_and_the_rest_is_used(mine, team):
    one = parts(64)
    one["record"]["trace"] = '[[["EnterPostproc",[],[],[]],["Evil",[],[],[]]],[]]'
    data = content(lines(one))
    (team / name_of(data)).write_bytes(data)
    for _ in range(2):
        (warned,) = warnings_of(mine, Layer(str(team)))
        assert name_of(data) in warned
        assert "Evil" in warned
    assert ids(mine) == {record(64).id}


def test_what_is_no_file_is_not_read(mine, team):
    os.mkfifo(team / f"{'0' * 64}.jsonl")
    (team / f"{'1' * 64}.jsonl").symlink_to("/dev/zero")
    assert warnings_of(mine, Layer(str(team))) == []
    assert ids(mine) == {record(64).id}


def test_damage_is_named_and_the_other_layers_are_used(mine, team, tmp_path):
    (tmp_path / "bad.jsonl").write_bytes(b"\x00\xff" * 1000)
    os.mkfifo(tmp_path / "pipe")
    bad = [str(tmp_path / name) for name in ("bad.jsonl", "pipe", "not-there")]
    warned = warnings_of(mine, *map(Layer, bad), Layer(str(team)))
    assert len(warned) == 3
    assert all(name in one for name, one in zip(bad, warned, strict=True))
    assert ids(mine) == {record(64).id}


def test_the_layer_of_a_schedule_is_known(mine, team, tmp_path):
    mine.add_workloads(list(bundle(128).workloads.values()))
    found = indexes([Layer(str(team))], pytest.fail)
    bring_in(found, KEYS, mine, pytest.fail)
    pushed, proved = (replace(record(64, s), claimed=False) for s in (1e-3, 2e-3))
    assert tiers(found, [pushed]) == {}
    assert tiers(found, [proved, record(128)]) == {KEY: "team", KEYS[1]: "team"}
    other = replace(proved, trace="[]")
    assert tiers(found, [other]) == {}
    export_file(registry(tmp_path / "base.db", 64), tmp_path / "base.jsonl")
    base = indexes([Layer(str(tmp_path / "base.jsonl"), tier="base")], pytest.fail)
    bring_in(base, KEYS, mine, pytest.fail)
    assert tiers((*base, *found), [proved]) == {KEY: "base"}


# Signatures


def test_only_what_is_signed_is_used_where_that_is_demanded(mine, team, key, tmp_path):
    signed = Layer(str(team), key.with_suffix(".pub"))
    warnings_of(mine, Layer(str(team)), keys=[])  # what came in unsigned is not trusted later
    (warned,) = warnings_of(mine, signed)
    assert "not signed" in warned
    assert ids(mine) == set()
    push(registry(tmp_path / "theirs.db", 64), str(team), load_signer(key))
    assert warnings_of(mine, signed) == [warned]  # of that which is still there
    assert ids(mine) == {record(64).id}


def test_a_bundle_signed_by_another_is_not_used(mine, team, key, tmp_path):
    make_key(tmp_path / "other")
    push(registry(tmp_path / "theirs.db", 64), str(team), load_signer(tmp_path / "other"))
    warned = warnings_of(mine, Layer(str(team), key.with_suffix(".pub")))
    assert ["refused" in one for one in warned] == [True, True]
    assert ids(mine) == set()


def test_without_the_keys_nothing_is_used(mine, team, tmp_path):
    (warned,) = warnings_of(mine, Layer(str(team), tmp_path / "no-keys.pub"))
    assert "no-keys.pub" in warned
    assert ids(mine) == set()


# URLs


class Counting(SimpleHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012 - of all requests

    def log_message(self, *words):
        self.asked.append(self.path)


@pytest.fixture
def server(team):
    Counting.asked.clear()
    handler = partial(Counting, directory=team)
    with serving(handler) as url:
        yield url


def long_ago(cache):
    (asked,) = cache.glob("*.asked")
    then = time.time() - layering.FRESH_SECONDS - 1
    os.utime(asked, (then, then))


def test_a_url_is_asked_now_and_then(mine, team, server, cache, tmp_path):
    assert warnings_of(mine, Layer(server)) == []
    assert ids(mine) == {record(64).id}
    count = len(Counting.asked)
    push(registry(tmp_path / "theirs.db", 64, seconds=1e-4), str(team))
    warnings_of(mine, Layer(server))
    assert len(Counting.asked) == count
    long_ago(cache)
    warnings_of(mine, Layer(server))
    assert mine.best([KEY], TVM) == {KEY: record(64, 1e-4)}
    assert len([path for path in Counting.asked if path.endswith(".jsonl")]) <= 4


def test_processes_that_fetch_at_once_leave_each_other_their_files(tmp_path):
    """Each removes what a fetch that was ended has left."""
    place, folder = tmp_path / "many", tmp_path / "copy"
    for number in (32, 64, 128):
        push(registry(tmp_path / f"{number}.db", number), str(place))
    words = {"url": str(place), "folder": str(folder), "signed": False}
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert list(pool.map(mirror, [words] * 4)) == [{}] * 4
            assert len(list(folder.iterdir())) == 3
            shutil.rmtree(folder)


def test_signatures_come_along(mine, team, server, key, cache, tmp_path):
    layer = Layer(server, key.with_suffix(".pub"))
    (warned,) = warnings_of(mine, layer)
    assert "not signed" in warned
    (path,) = team.iterdir()
    signature = load_signer(key).sign(path.read_bytes())
    path.with_name(path.name + ".sig").write_text(signature)
    long_ago(cache)
    assert warnings_of(mine, layer) == []
    assert ids(mine) == {record(64).id}


def test_a_url_that_withdraws_a_bundle(mine, team, server, cache, tmp_path):
    warnings_of(mine, Layer(server), keys=[])
    for path in team.iterdir():
        path.unlink()
    push(registry(tmp_path / "other.db", 64, seconds=5e-3), str(team))
    long_ago(cache)
    warnings_of(mine, Layer(server))
    assert ids(mine) == {record(64, 5e-3).id}


@pytest.fixture
def silent():
    """The address of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_url_that_never_answered_is_named(mine, silent, monkeypatch):
    monkeypatch.setattr(layering, "PATIENCE", 2.0)
    (warned,) = warnings_of(mine, Layer(silent))
    assert silent in warned
    assert "2 s" in warned


def test_where_nobody_listens_no_process_is_started(mine, monkeypatch):
    monkeypatch.setattr(worker, "Worker", lambda **words: pytest.fail("it is started"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    (warned,) = warnings_of(mine, Layer(f"http://127.0.0.1:{port}/records"))
    assert "Connection refused" in warned


def test_without_its_url_a_layer_is_as_it_was(mine, team, cache, server, tmp_path):
    warnings_of(mine, Layer(server), keys=[])
    long_ago(cache)
    shutil.rmtree(team)  # the server has nothing to answer with any more
    (warned,) = warnings_of(mine, Layer(server))
    assert server in warned
    assert "are those of" in warned
    assert ids(mine) == {record(64).id}


# Which there are


def test_the_layers_of_a_project(tmp_path):
    seed = tmp_path / "seed"
    assert layers_of(Project(), seed) == ()
    seed.mkdir()
    (seed / "notes.md").touch()
    assert layers_of(Project(), seed) == ()
    (seed / "a.jsonl").touch()
    project = Project(tmp_path, trust=tmp_path / "keys", team="s3://team/records")
    assert layers_of(project, seed) == (
        Layer(str(seed), tier="base"),
        Layer("s3://team/records", tmp_path / "keys"),
    )
