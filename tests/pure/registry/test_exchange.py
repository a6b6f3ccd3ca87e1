"""Registries give each other records: any order, any number of times, nothing torn or hostile."""

import dataclasses
import json
import os
import shutil
import sqlite3
import sys
import zlib
from itertools import islice, permutations

import fsspec
import pytest
import zstandard
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.foreign import TVM, bundle, content, exported, lines, parts, registry
from helpers.registry_samples import TARGET

from ansor_deploy.errors import AnsorError, RegistryError
from ansor_deploy.registry.bundle import Bundle
from ansor_deploy.registry.exchange import export_file, import_file, merge_file, pull, push
from ansor_deploy.registry.limits import BUNDLE_BYTES
from ansor_deploy.registry.record import SearchEnd
from ansor_deploy.registry.remote import name_of
from ansor_deploy.registry.store import Registry
from ansor_deploy.registry.transfer import Taken, contents

KEYGEN = shutil.which("ssh-keygen")


def test_an_export_is_imported_whole(tmp_path):
    mine = registry(tmp_path / "mine.db", 64, 128, ended=True)
    file, theirs = tmp_path / "team.jsonl", tmp_path / "theirs.db"
    assert export_file(mine, file).records == 2
    assert import_file(theirs, file) == Taken(2, 0)
    assert import_file(theirs, file) == Taken(0, 2)
    assert exported(theirs) == exported(mine) == file.read_bytes()
    (wanted,) = bundle(64).records.values()
    with Registry.open(theirs, write=False) as store:
        assert store.best([wanted.key], TVM) == {wanted.key: wanted}
        assert [(end.tvm, end.enough_for) for end in store.ends(wanted.key)] == [(TVM, 64)]
        assert store.verify() == []


def test_a_part_is_whole_in_itself(tmp_path):
    mine = registry(tmp_path / "mine.db", 64, 128, ended=True)
    (key,) = {record.key for record in bundle(64).records.values()}
    part, left_out = contents(mine, lambda workload, target: workload == key.workload)
    assert left_out == []
    assert [record.key for record in part.records.values()] == [key]
    assert list(part.workloads) == [key.workload]
    assert {end.key for end in part.searches} == {key}
    assert contents(mine, lambda workload, target: target == key.workload)[0] == Bundle()


def test_a_search_ended_elsewhere_under_the_rules_of_its_newest_record(tmp_path):
    """Bundles do not say it."""
    mine = registry(tmp_path / "mine.db", 64, ended=True)
    (wanted,) = bundle(64).records.values()
    early = SearchEnd(wanted.key, TVM, "ansor", 8, "limit", 8, "2025-01-31T12:00:00+00:00")
    with Registry.open(mine) as store:
        (end,) = store.ends(wanted.key)
        store.add_searches([early, dataclasses.replace(end, rules="9" * 64)])
    assert b'"search":{"created"' in exported(mine)
    assert b'"rules":"9' not in exported(mine)
    theirs = tmp_path / "theirs.db"
    for _ in range(2):
        merge_file(theirs, mine)
        with Registry.open(theirs, write=False) as store:
            found = {end.trials: end.rules for end in store.ends(wanted.key)}
        assert found == {8: "", 64: wanted.provenance.rules}
    assert exported(theirs) == exported(mine)


def test_five_registries_merged_in_any_order_are_one(tmp_path):
    """In each fifth of all orders, of which some begin with each of them."""
    sizes = [(1, 2), (2, 3), (3, 4, 5), (5,), (1, 6)]
    files = [
        registry(tmp_path / f"{n}.db", *of, seconds=1e-3 * (n + 1), ended=n % 2 == 0)
        for n, of in enumerate(sizes)
    ]
    outcomes = set()
    for number, order in enumerate(islice(permutations(files), None, None, 5)):
        union = tmp_path / f"union-{number}.db"
        shutil.copy(order[0], union)
        for other in order[1:]:
            merge_file(union, other)
        outcomes.add(exported(union))
        union.unlink()
    assert len(outcomes) == 1
    found = outcomes.pop().decode()
    assert found.count('"record":') == sum(map(len, sizes))
    assert found.count('"workload":{"bytes"') == 6


def test_merging_leaves_the_other_as_it_is(tmp_path):
    mine, other = registry(tmp_path / "mine.db", 1), registry(tmp_path / "other.db", 2)
    before = other.read_bytes()
    assert merge_file(mine, other) == Taken(1, 0)
    assert other.read_bytes() == before


def test_what_is_known_here_is_not_renamed(tmp_path):
    mine, other = tmp_path / "mine.db", registry(tmp_path / "other.db", 64)
    with Registry.open(mine) as store:
        store.add_target(TARGET)
    merge_file(mine, other)
    with Registry.open(mine, write=False) as store:
        assert [row["target"] for row in store.query()] == ["board"]
    with Registry.open(other, write=False) as store:
        assert [row["target"] for row in store.query()] == ["cortex-a53"]
        (row,) = store.rows("SELECT json FROM targets")
    assert "peak_gflops" not in row["json"]  # nobody has declared it here


def test_a_model_knows_better_what_a_workload_is_than_others(tmp_path):
    mine, other = tmp_path / "mine.db", registry(tmp_path / "other.db", 64)
    (foreign,) = bundle(64).workloads.values()
    own = dataclasses.replace(foreign, name="add_relu", op="add", family="f" * 64, flops=1.0)
    merge_file(mine, other)
    for _ in range(2):
        with Registry.open(mine) as store:
            store.add_workloads([own])
            assert [(row["op"], row["name"]) for row in store.query()] == [("add", "add_relu")]
        merge_file(mine, other)
    assert b'"flops":1.0' in exported(mine)


def test_places_are_unions(tmp_path, place):
    first = registry(tmp_path / "1.db", 1, 2, ended=True)
    second = registry(tmp_path / "2.db", 2, 3)
    assert push(first, place).records == 2
    assert push(first, place).name == ""
    pushed = push(second, place)
    assert pushed.records == 1
    assert push(second, place).name == ""
    files = {path.name: path.read_bytes() for path in (tmp_path / "place").iterdir()}
    for path in (first, second, tmp_path / "3.db"):
        found = pull(path, place)
        assert (found.bundles, found.torn, found.refused) == (2, [], [])
        assert pull(path, place).taken.records == 0
    assert exported(first) == exported(second) == exported(tmp_path / "3.db")
    assert push(first, place).name == ""
    assert {path.name: path.read_bytes() for path in (tmp_path / "place").iterdir()} == files


def test_a_place_may_be_a_path_or_in_memory(tmp_path):
    mine = registry(tmp_path / "mine.db", 1)
    for url in (str(tmp_path / "folder" / "deep"), "memory://test-exchange/deep"):
        assert push(mine, url).records == 1
        assert pull(tmp_path / "new.db", url).bundles == 1
    fsspec.filesystem("memory").rm("/test-exchange", recursive=True)


def test_torn_uploads_are_passed_over_and_mended(tmp_path, place):
    mine = registry(tmp_path / "mine.db", 1, 2)
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "notes.txt").write_text("no bundle")
    name = push(mine, place).name
    whole = (tmp_path / "place" / name).read_bytes()
    for torn in (b"", whole[:100], whole[:-1], whole + b"\n"):
        (tmp_path / "place" / name).write_bytes(torn)
        found = pull(tmp_path / "new.db", place)
        assert (found.bundles, found.torn) == (0, [name])
    assert push(mine, place).name == name
    assert pull(tmp_path / "new.db", place).taken == Taken(2, 0)


def test_of_many_uploads_that_did_not_end_a_few_are_named(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    for at in range(20):
        (place / f"{at:064x}.jsonl").touch()
    said = program(tmp_path, "registry", "pull", "place", "--registry", "new.db").stderr
    *named, rest = said.splitlines()
    assert [line.partition(":")[0] for line in named] == ["incomplete, and ignored"] * 8
    assert rest == "and 12 more such files"


@pytest.mark.parametrize("wrong", ["team.jsonl", f"{'0' * 64}.jsonl"])
def test_a_bundle_under_a_wrong_name_is_named_with_the_right_one(tmp_path, place, wrong):
    name = push(registry(tmp_path / "mine.db", 1), place).name
    (tmp_path / "place" / name).rename(tmp_path / "place" / wrong)
    (tmp_path / "place" / "other.jsonl").write_text('{"no": "bundle"}\n')
    found = pull(tmp_path / "new.db", place)
    assert (found.bundles, found.torn, found.misnamed) == (0, [], {wrong: name})
    said = program(tmp_path, "registry", "pull", place, "--registry", "new.db").stderr
    assert f"{wrong} is not used" in said
    assert name in said
    (tmp_path / "place" / wrong).rename(tmp_path / "place" / name)
    assert pull(tmp_path / "new.db", place).taken == Taken(1, 0)


def test_what_is_no_file_is_not_read(tmp_path, place):
    push(registry(tmp_path / "mine.db", 1), place)
    os.mkfifo(tmp_path / "place" / f"{'0' * 64}.jsonl")
    (tmp_path / "place" / f"{'1' * 64}.jsonl").symlink_to("/dev/zero")
    found = pull(tmp_path / "new.db", place)
    assert (found.bundles, found.torn) == (1, [])


def hostile(place_path):
    one = parts(7)
    one["record"]["seconds"] = [-1.0]
    data = content(lines(one, parts(8)))
    place_path.mkdir(exist_ok=True)
    (place_path / name_of(data)).write_bytes(data)
    return name_of(data)


def test_a_hostile_bundle_is_left_out_whole_and_the_others_are_not(tmp_path, place):
    push(registry(tmp_path / "mine.db", 1), place)
    name = hostile(tmp_path / "place")
    found = pull(tmp_path / "new.db", place)
    assert (found.bundles, found.taken) == (1, Taken(1, 0))
    assert len(found.refused) == 1
    assert name in found.refused[0].message
    assert exported(tmp_path / "new.db") == exported(tmp_path / "mine.db")


@pytest.mark.parametrize(
    ("url", "says"),
    [("s3://bucket/records", "s3fs"), ("nonsense://x", "nonsense"), ("/nowhere/at/all", "nowhere")],
)
def test_what_cannot_be_reached_is_an_error(tmp_path, url, says):
    with pytest.raises(RegistryError) as caught:
        pull(tmp_path / "new.db", url)
    assert says in caught.value.message + caught.value.hint
    assert not (tmp_path / "new.db").exists()


class Buckets(fsspec.AbstractFileSystem):
    """What a file system of buckets does where there is no such bucket, or no permission."""

    protocol = "buckets"

    def ls(self, path, detail=True, **kwargs):
        raise PermissionError("Access Denied") if "closed" in path else FileNotFoundError(path)

    def pipe_file(self, path, value, **kwargs):
        raise FileNotFoundError("The specified bucket does not exist")

    makedirs = None  # a real one makes the bucket


def test_a_bucket_is_not_made(tmp_path):
    fsspec.register_implementation("buckets", Buckets, clobber=True)
    mine = registry(tmp_path / "mine.db", 1)
    for command, url, says in (
        (push, "buckets://mistyped/x", r"is there \(The specified bucket does not exist\)\n"),
        (pull, "buckets://mistyped/x", r"is there \(mistyped/x\)\n"),
        (pull, "buckets://closed/x", r"used: Access Denied\n"),
    ):
        with pytest.raises(RegistryError, match=says):
            command(mine, url)


def test_records_that_others_would_refuse_stay_at_home(tmp_path):
    mine = registry(tmp_path / "mine.db", 1, 2)
    with sqlite3.connect(mine) as raw:
        raw.execute("DROP TRIGGER records_are_immutable")
        raw.execute("UPDATE records SET proof = '{}' WHERE id IN (SELECT min(id) FROM records)")
    raw.close()
    given = export_file(mine, tmp_path / "out.jsonl")
    assert (given.records, len(given.left_out)) == (1, 1)
    assert "no proof" in str(given.left_out[0])
    assert import_file(tmp_path / "new.db", tmp_path / "out.jsonl") == Taken(1, 0)
    with pytest.raises(RegistryError, match="no proof"):
        merge_file(tmp_path / "merged.db", mine)
    assert not (tmp_path / "merged.db").exists()


BOMB = zlib.compress(b"[" * (1 << 26)).hex()
ENDLESS = """
    ALTER TABLE searches RENAME TO moved;
    CREATE VIEW searches AS WITH RECURSIVE endless(n) AS
    (SELECT 1 UNION ALL SELECT n + 1 FROM endless) SELECT n FROM endless
"""
SPOILT = {
    "zlib bomb": (f"UPDATE records SET trace = x'{BOMB}'", "not JSON"),  # noqa: S608
    "no zlib": ("UPDATE records SET trace = x'00'", "not JSON"),
    "no JSON": ("UPDATE records SET seconds = 'x'", "not JSON"),
    "NaN": ("UPDATE records SET seconds = '[NaN]'", "not JSON"),
    "deep": ("UPDATE records SET seconds = '" + "[" * 5000 + "'", "not JSON"),
    "target": ("UPDATE targets SET json = '[]'", "not JSON"),
    "name": ("UPDATE searches SET id = 7, tvm = char(27)", "tvm"),
    "key": ("UPDATE records SET id = char(27) || '[2J'", "digest"),
    "view": (ENDLESS, "is not that of a registry"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_hostile_registries_are_refused(tmp_path, name):
    statements, says = SPOILT[name]
    other = registry(tmp_path / "other.db", 1, ended=True)
    raw = sqlite3.connect(other)
    raw.executescript(f"DROP TRIGGER records_are_immutable; {statements}")
    raw.close()
    with pytest.raises(RegistryError) as caught:
        merge_file(tmp_path / "mine.db", other)
    assert says in caught.value.message
    assert caught.value.message.replace("\n", "").isprintable()
    assert not (tmp_path / "mine.db").exists()


def test_files_may_be_compressed(tmp_path):
    mine, file = registry(tmp_path / "mine.db", *range(1, 9)), tmp_path / "out.jsonl.zst"
    given = export_file(mine, file)
    assert file.stat().st_size < len(exported(mine)) / 4
    assert given.name == export_file(mine, tmp_path / "out.jsonl").name
    assert import_file(tmp_path / "new.db", file) == Taken(8, 0)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(RegistryError, match=r"refused|damaged"):
        import_file(tmp_path / "other.db", file)


def test_a_missing_package_is_no_fault_of_a_registry(tmp_path, monkeypatch):
    mine = registry(tmp_path / "mine.db", 1)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(AnsorError, match="needs the package zstandard") as caught:
        export_file(mine, tmp_path / "out.zst")
    assert caught.value.exit_code == 1


def test_a_compressed_bomb_does_not_go_off(tmp_path):
    file = tmp_path / "bomb.zst"
    packer = zstandard.ZstdCompressor().compressobj()
    pieces = [b'{"ansor-deploy-bundle":1}\n', *[b"x" * (1 << 20)] * ((BUNDLE_BYTES >> 20) + 1)]
    with file.open("wb") as stream:
        stream.writelines(map(packer.compress, pieces))
        stream.write(packer.flush())
    assert file.stat().st_size < 1 << 20
    with pytest.raises(RegistryError, match="larger than"):
        import_file(tmp_path / "new.db", file)


# The command line


def test_the_commands(tmp_path, key):
    registry(tmp_path / "mine.db", 1, 2)
    mine, theirs = ("--registry", "mine.db"), ("--registry", "theirs.db")
    out = answer(tmp_path, "registry", "export", "out.jsonl", *mine, "--sign", key)
    assert (out["records"], out["left_out"]) == (2, 0)
    trust = ("--trust", "id.pub")
    assert answer(tmp_path, "registry", "import", "out.jsonl", *theirs, *trust) == {
        "new": 2,
        "known": 0,
        "contests": 0,
    }
    assert answer(tmp_path, "registry", "merge", "mine.db", *theirs) == {
        "new": 0,
        "known": 2,
        "contests": 0,
    }
    assert answer(tmp_path, "registry", "push", "place", *mine)["records"] == 2
    ran = program(tmp_path, "registry", "push", "place", *mine)
    assert ran.stdout == "place has every record already\n"
    assert answer(tmp_path, "registry", "pull", "place", "--registry", "new.db") == {
        "new": 2,
        "known": 0,
        "contests": 0,
        "bundles": 1,
        "torn": [],
        "misnamed": {},
    }
    ran = program(tmp_path, "registry", "import", "out.jsonl", *theirs)
    assert ran.stdout == "0 new records, 2 known already\n"
    refused(program(tmp_path, "registry", "push", *mine), 2, "no folder is named")
    (tmp_path / "ansor-deploy.toml").write_text('team = "place"\n')
    ran = program(tmp_path, "registry", "push", *mine)
    assert ran.stdout == f"{tmp_path / 'place'} has every record already\n"
    assert answer(tmp_path, "registry", "pull", *theirs)["known"] == 2


def test_the_commands_refuse(tmp_path, key):
    registry(tmp_path / "mine.db", 1)
    mine = ("--registry", "mine.db")
    one = parts(7)
    one["record"]["provenance"]["device"] = "a\x1b[2Jb"
    (tmp_path / "bad.jsonl").write_bytes(content(lines(one)))
    result = program(tmp_path, "registry", "import", "bad.jsonl", *mine)
    refused(result, 8, "bad.jsonl is refused", "line 2: device")
    assert "\x1b" not in result.stderr
    hostile(tmp_path / "place")
    refused(program(tmp_path, "registry", "pull", "place", *mine), 8, "record: times")
    result = program(tmp_path, "registry", "pull", "place", *mine, "--json")
    assert json.loads(result.stdout)["error"]["exit_code"] == 8
    refused(program(tmp_path, "registry", "pull", "nonsense://x", *mine), 8, "nonsense")


def test_a_project_may_demand_signatures(tmp_path, key):
    registry(tmp_path / "mine.db", 1)
    (tmp_path / "ansor-deploy.toml").write_text('trust = "id.pub"\nregistry = "own.db"\n')
    program(tmp_path, "registry", "export", "out.jsonl", "--registry", "mine.db")
    refused(program(tmp_path, "registry", "import", "out.jsonl"), 8, "not signed")
    refused(program(tmp_path, "registry", "merge", "mine.db"), 2, "signed records only")
    program(tmp_path, "registry", "export", "out.jsonl", "--registry", "mine.db", "--sign", key)
    assert answer(tmp_path, "registry", "import", "out.jsonl")["new"] == 1
