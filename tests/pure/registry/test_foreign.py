"""A SQLite file of somebody else is read, never written, and nothing in it runs."""

import os
import sqlite3
import struct
import subprocess
import sys
import threading
import zlib
from contextlib import closing

import pytest
from helpers import registry_samples
from helpers.cli_inside import program
from helpers.cli_process import everything, refused
from helpers.foreign import registry
from helpers.registry_samples import fill, workload

from ansor_deploy.errors import RegistryError
from ansor_deploy.registry import foreign, transfer
from ansor_deploy.registry.exchange import merge_file
from ansor_deploy.registry.salvage import salvage
from ansor_deploy.registry.schema import PACKED, packed
from ansor_deploy.registry.store import Registry
from ansor_deploy.registry.transfer import Taken

ENDLESS = "WITH RECURSIVE e(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM e) SELECT n FROM e"
TRIGGER = f"CREATE TRIGGER evil BEFORE UPDATE ON beaten BEGIN SELECT n FROM ({ENDLESS}); END"  # noqa: S608


@pytest.fixture
def other(tmp_path):
    """A folder with nothing in it but somebody's registry."""
    folder = tmp_path / "other"
    folder.mkdir()
    return registry(folder / "other.db", 1, 2, ended=True)


@pytest.fixture
def mine(tmp_path):
    return tmp_path / "mine.db"


def alter(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def select(path, what):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT {what}").fetchone()


def refusal(mine, path):
    """What the refusal of a file says; nothing is made of it, and nothing written beside it."""
    before = everything(path.parent) if path.parent.name == "other" else {}
    with pytest.raises(RegistryError) as caught:
        merge_file(mine, path)
    assert caught.value.exit_code == 8
    assert caught.value.hint
    assert not mine.exists()
    assert before == (everything(path.parent) if before else {})
    return caught.value.message


# What it is


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty", "pipe", "folder", "link"])
def test_what_is_no_file_is_an_error_at_once(tmp_path, mine, device):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/dev/zero")
    assert "no regular file" in refusal(mine, tmp_path / device)


def test_links_that_lead_nowhere_are_errors(tmp_path, mine):
    (tmp_path / "loop").symlink_to("loop")
    assert "symbolic links" in refusal(mine, tmp_path / "loop")
    (tmp_path / "dangling").symlink_to("nothing")
    assert "No such file" in refusal(mine, tmp_path / "dangling")


def test_an_empty_file_is_no_registry(tmp_path, mine):
    (tmp_path / "empty").touch()
    assert "empty" in refusal(mine, tmp_path / "empty")


def test_the_command_refuses_what_is_no_file(tmp_path):
    refused(program(tmp_path, "registry", "merge", "/dev/zero", "--registry", "m.db"), 8, "regular")
    (tmp_path / "loop").symlink_to("loop")
    for path, code in (("/dev/zero", 8), ("/dev/null", 8), ("loop", 2)):
        refused(program(tmp_path, "registry", "stats", "--registry", path), code)
        refused(program(tmp_path, "registry", "gc", "--registry", path), code)


# Nothing is written


def test_a_registry_without_permissions_to_write_is_read(other, mine):
    other.chmod(0o444)
    other.parent.chmod(0o555)
    before = everything(other.parent)
    assert merge_file(mine, other) == Taken(2, 0)
    assert everything(other.parent) == before
    other.parent.chmod(0o755)


def test_a_file_in_wal_mode_is_read(other, mine):
    alter(other, "PRAGMA journal_mode = WAL")
    before = everything(other.parent)
    assert merge_file(mine, other) == Taken(2, 0)
    assert everything(other.parent) == before


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_what_a_killed_writer_left_is_not_taken_for_whole(other, mine, ending):
    other.with_name(other.name + ending).write_bytes(b"\xd9\xd5\x05\xf9" + bytes(600))
    assert "in the middle of a transaction" in refusal(mine, other)


def test_a_pipe_in_the_journals_place_is_not_waited_for(other, mine):
    os.mkfifo(other.with_name(f"{other.name}-journal"))
    with pytest.raises(RegistryError, match="regular"):
        merge_file(mine, other)


def test_a_file_that_is_being_written_is_waited_for(other, mine, monkeypatch):
    command = [sys.executable, registry_samples.__file__, "hold", str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        monkeypatch.setattr(foreign, "BUSY_SECONDS", 0.1)
        with pytest.raises(RegistryError, match="in use by"):
            merge_file(mine, other)
        monkeypatch.setattr(foreign, "BUSY_SECONDS", 30.0)
        threading.Timer(0.2, holder.kill).start()
        assert merge_file(mine, other) == Taken(2, 0)


def test_a_writer_waits_for_the_reader(other):
    with foreign.foreign_file(other):
        code = (
            "import sys; from pathlib import Path; from helpers.registry_samples import TARGET;"
            "from ansor_deploy.registry.store import Registry\n"
            "with Registry.open(Path(sys.argv[1]), busy_seconds=0.1) as registry:\n"
            "    registry.add_target(TARGET)"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code, other],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert "in use by" in ran.stderr


def test_a_file_that_changes_meanwhile_is_refused(other, mine, monkeypatch):
    """By something that knows no locks, such as a copy that is under way."""

    def changing(*values, own):
        with other.open("ab") as stream:
            stream.write(b"x")
        return strange(*values, own=own)

    strange = foreign.strange
    monkeypatch.setattr(foreign, "strange", changing)
    with pytest.raises(RegistryError, match="changes while it is read"):
        merge_file(mine, other)


# What it declares

STRANGE = {
    "trigger": ["CREATE TRIGGER evil AFTER INSERT ON targets BEGIN SELECT 1; END"],
    "view": ["CREATE VIEW evil AS SELECT 1"],
    "table": ["CREATE TABLE evil (x)"],
    "index of an expression": ["CREATE INDEX evil ON records (printf('%*d', 1000000, latency))"],
    "index": ["CREATE INDEX evil ON records (created)"],
    "virtual table": ["CREATE VIRTUAL TABLE evil USING fts5(x)"],
    "generated column": ["ALTER TABLE tunings ADD COLUMN evil BLOB AS (zeroblob(1000000000))"],
    "default": ["ALTER TABLE tunings ADD COLUMN evil TEXT DEFAULT (hex(randomblob(9)))"],
    "changed view": ["DROP VIEW tasks", f"CREATE VIEW tasks AS {ENDLESS}"],
    "view in a table's place": ["DROP TABLE tunings", f"CREATE VIEW tunings AS {ENDLESS}"],
    "column behind a comment": [
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, char(10), ' ') WHERE name = 'workloads'",
    ],
    "trigger that is said to be a table": [
        "CREATE TRIGGER evil AFTER INSERT ON targets BEGIN SELECT 1; END",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET type = 'table', tbl_name = 'evil' WHERE name = 'evil'",
    ],
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_no_registry_declares_is_refused(other, mine, name):
    alter(other, *STRANGE[name])
    said = refusal(mine, other)
    assert "is not that of a registry" in said or "malformed" in said


def test_many_declarations_cost_little(other, mine):
    tables = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)"
    row = "'table', 't' || i, 't' || i, 2, 'CREATE TABLE t' || i || ' (x)'"
    added = f"INSERT INTO sqlite_schema {tables} SELECT {row} FROM n"  # noqa: S608
    alter(other, "PRAGMA writable_schema = ON", added)
    assert len(refusal(mine, other)) < 400


# What is in it


def test_a_page_that_stands_in_the_tree_many_times_is_refused(other, mine):
    """Its rows would be without end in a tree of a few such levels."""
    with Registry.open(other) as store:
        fill(store, 300)
    (root,) = select(other, "rootpage FROM sqlite_schema WHERE name = 'records'")
    whole = bytearray(other.read_bytes())
    page = memoryview(whole)[(root - 1) * 4096 : root * 4096]
    assert page[0] == 5  # it has pages below it
    (count,) = struct.unpack_from(">H", page, 3)
    cells = struct.unpack_from(f">{count}H", page, 12)
    for cell in cells[1:]:
        page[cell : cell + 4] = page[cells[0] : cells[0] + 4]
    other.write_bytes(whole)
    assert "reference" in refusal(mine, other) or "out of order" in refusal(mine, other)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 cannot set SQLite's limits")
def test_a_huge_value_is_not_read(other, mine):
    alter(
        other,
        "DROP TRIGGER records_are_immutable",
        "UPDATE records SET trace = zeroblob(5000000) WHERE rowid = 1",
    )
    assert "too large" in refusal(mine, other)


def test_more_than_a_bundle_may_have_is_refused(other, mine, monkeypatch):
    monkeypatch.setattr(foreign, "MOST_BYTES", 1000)
    assert "MiB" in refusal(mine, other)


def test_rows_that_unpack_to_much_are_not_unpacked_one_after_the_other(other, mine, monkeypatch):
    monkeypatch.setattr(transfer, "MOST_BYTES", 2 << 20)
    bomb = zlib.compress(bytes(1 << 23)).hex()
    rest = "workload, target, tvm, latency, created, seconds, proof, provenance, x'{}', claimed"
    alter(
        other,
        *(
            f"INSERT INTO records SELECT '{n:064x}', {rest.format(bomb)} FROM records LIMIT 1"  # noqa: S608
            for n in range(4)
        ),
    )
    assert "MiB of records" in refusal(mine, other)


def test_what_travels_is_unpacked_to_no_more_than_a_bundles_line():
    text = "x" * (2 << 20)
    assert PACKED.parse(packed(text)) == text
    with pytest.raises(ValueError, match="too long"):
        PACKED.sent(packed(text))


def test_what_takes_sqlite_too_long_is_ended(other, mine, monkeypatch):
    monkeypatch.setattr(foreign, "PATIENCE", -1.0)
    monkeypatch.setattr(foreign, "_LOOK", 1)
    assert "too long" in refusal(mine, other)


def test_no_more_than_rows_is_asked_of_it(other):
    with foreign.foreign_file(other) as file:
        for sql in ("SELECT load_extension('x')", "ATTACH ':memory:' AS x", "DELETE FROM records"):
            with pytest.raises(sqlite3.DatabaseError):
                file._connection.execute(sql)


# One's own


def test_a_planted_trigger_does_not_run(tmp_path):
    path = registry(tmp_path / "registry.db", 1, 2)
    alter(path, TRIGGER)
    before = path.read_bytes()
    for write in (True, False):
        with pytest.raises(RegistryError, match="'evil'") as caught:
            Registry.open(path, write=write)
        assert "--repair" in caught.value.hint
    assert everything(tmp_path) == {"registry.db": before}
    salvage(path)
    with Registry.open(path) as store:
        assert store.verify() == []
        assert store.stats()["records"] > 0


@pytest.mark.parametrize("name", ["trigger", "index of an expression", "changed view", "default"])
def test_what_a_registry_declares_is_looked_at_whenever_it_is_opened(tmp_path, name):
    path = registry(tmp_path / "registry.db", 1)
    alter(path, *STRANGE[name])
    with pytest.raises(RegistryError, match="is not that of a registry"):
        Registry.open(path)


def test_a_user_may_add_tables_views_and_plain_indexes(tmp_path):
    path = registry(tmp_path / "registry.db", 1)
    alter(
        path,
        "CREATE TABLE notes (text)",
        "CREATE VIEW fast AS SELECT * FROM records ORDER BY latency",
        "CREATE INDEX by_time ON records (created, latency)",
        "ANALYZE",
    )
    with Registry.open(path) as store:
        store.add_workloads([workload()])
        assert store.verify() == []


KILLED = """
import os, sqlite3, sys
run = sqlite3.connect(sys.argv[1], isolation_level=None).execute
run("PRAGMA cache_size = 1")
run("BEGIN IMMEDIATE")
run("CREATE TABLE large (x)")
for _ in range(20):
    run("INSERT INTO large VALUES (zeroblob(5000))")
os.kill(os.getpid(), 9)
"""


def test_a_planted_journal_removes_no_other_file(tmp_path):
    """SQLite removes the file that a journal names as that of a transaction over several."""
    path, precious = registry(tmp_path / "registry.db", 1), tmp_path / "precious.txt"
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    journal, name = path.with_name(f"{path.name}-journal"), os.fsencode(precious)
    whole = journal.read_bytes()
    precious.write_text("precious")
    size = (1 << 30) // 4096 + 1
    end = struct.pack(">II", len(name), sum(name)) + bytes.fromhex("d9d505f920a163d7")
    journal.write_bytes(whole + struct.pack(">I", size) + name + end)
    for write in (True, False):
        with pytest.raises(RegistryError, match="another file"):
            Registry.open(path, write=write)
    assert precious.read_text() == "precious"
    journal.write_bytes(whole)
    with Registry.open(path) as store:  # which rolls back what a killed writer has left
        assert store.verify() == []
        assert store.stats()["records"] == 1
