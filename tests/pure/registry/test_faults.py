"""A registry survives what happens to files, and says plainly what it does not survive."""

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from helpers import registry_samples
from helpers.registry_samples import TARGET, TVM, fill, key, measurement

from ansor_deploy.errors import MachineError, RegistryError
from ansor_deploy.registry import connect
from ansor_deploy.registry.connect import APPLICATION_ID, SCHEMA_VERSION
from ansor_deploy.registry.faults import in_use
from ansor_deploy.registry.store import Registry

SAMPLES = registry_samples.__file__


@pytest.fixture
def path(tmp_path):
    """A registry with a few hundred rows, closed."""
    place = tmp_path / "registry.db"
    with Registry.open(place) as registry:
        fill(registry)
    return place


def alter(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def refused(path, *, write=True):
    with pytest.raises(RegistryError) as caught:
        Registry.open(path, write=write)
    assert caught.value.exit_code == 8
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value.message


def test_a_locked_registry_names_who_holds_it(path):
    with subprocess.Popen(
        [sys.executable, SAMPLES, "hold", str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout.readline() == "locked\n"
            with Registry.open(path, busy_seconds=0.1) as registry:
                assert registry.best([key()], TVM)  # readers are not held up
                with pytest.raises(RegistryError, match="in use by") as caught:
                    registry.add_target(TARGET)
        finally:
            holder.kill()
    if Path("/proc/locks").exists():
        assert f"process {holder.pid} " in caught.value.message
    assert "try again" in caught.value.hint


def test_a_lock_that_nobody_holds_may_be_one_that_the_file_system_refuses(path):
    """As NFS does without its lock daemon: SQLite then says that the file is locked."""
    error = in_use(path)
    assert "in use by another process" in error.message
    assert "its file system has no locks" in error.hint


def test_a_fault_by_which_sqlite_ends_a_transaction_is_the_one_that_is_named(path, monkeypatch):
    def failing(connection, of):
        connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(connect, "version_of", failing)
    with pytest.raises(MachineError, match="input/output error"):
        Registry.open(path)


def test_a_file_that_may_not_grow_is_at_its_limit(tmp_path):
    """SQLite calls that an error of the disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(MachineError, match=r"file too large: .*new\.db") as caught:
            Registry.open(tmp_path / "new.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "ulimit -f" in caught.value.hint


def test_a_folder_without_permission_is_refused_before_any_work():
    # Not pytest's folder: others than its owner may not pass through that one.
    folder = Path(tempfile.mkdtemp())
    try:
        with Registry.open(folder / "registry.db") as registry:
            fill(registry)
        (folder / "registry.db").chmod(0o444)
        folder.chmod(0o555)
        printed = as_nobody(folder / "registry.db", folder / "new" / "registry.db")
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
    assert "not writable" in printed[0]
    assert "not writable" in printed[1] or "denied" in printed[1]
    assert printed[2] == "read 20"


def as_nobody(existing, new):
    """What opening both for writing says, and that the first can still be read."""
    code = """if True:
        import os, sys
        from pathlib import Path
        from ansor_deploy.errors import RegistryError
        from ansor_deploy.registry.store import Registry
        if os.getuid() == 0:
            os.setuid(65534)
        for path in sys.argv[1:]:
            try:
                Registry.open(Path(path))
            except RegistryError as error:
                print(error.message)
        try:
            with Registry.open(Path(sys.argv[1]), write=False) as registry:
                print("read", len(registry.rows("SELECT * FROM workloads")))
        except RegistryError as error:
            print(error.message)
    """
    command = [sys.executable, "-c", code, str(existing), str(new)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    assert "exists" in refused(tmp_path / "file" / "registry.db")
    assert "Not a directory" in refused(tmp_path / "file" / "data" / "registry.db")


def test_a_path_that_is_a_folder(tmp_path):
    assert "cannot be opened" in refused(tmp_path)
    assert "cannot be opened" in refused(tmp_path, write=False)


def test_a_text_file_is_not_a_registry(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a registry at all\n" * 100)
    assert "not a registry" in refused(path)
    assert path.read_text().startswith("not a registry")


@pytest.mark.parametrize("write", [True, False])
def test_a_file_of_a_few_bytes_is_left_alone(tmp_path, write):
    path = tmp_path / "notes.txt"
    path.write_text("note")
    assert "too small" in refused(path, write=write)
    assert path.read_text() == "note"


@pytest.mark.parametrize("write", [True, False])
def test_a_damaged_header_is_refused(path, write):
    with path.open("r+b") as file:
        file.write(bytes(100))
    assert "damaged" in refused(path, write=write)


def test_a_truncated_file_is_noticed(path):
    os.truncate(path, path.stat().st_size // 2)
    assert noticed(path)


def test_a_page_that_was_overwritten_is_noticed(path):
    whole = path.read_bytes()
    size = int.from_bytes(whole[16:18], "big")
    for start in range(0, len(whole), size):
        path.write_bytes(whole[:start] + b"\xff" * size + whole[start + size :])
        assert noticed(path), f"page {start // size + 1}"


def test_a_flipped_bit_never_gives_a_wrong_record(path):
    whole = path.read_bytes()
    with Registry.open(path, write=False) as registry:
        good = {record for n in range(20) for record in map(repr, registry.top(key(n), TVM, 99))}
    for place in range(0, len(whole), len(whole) // 300):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            with Registry.open(path, write=False) as registry:
                found = [r for n in range(20) for r in registry.top(key(n), TVM, 99)]
        except RegistryError:
            continue
        assert {repr(record) for record in found} <= good


def noticed(path):
    """Whether opening or verifying says that something is wrong."""
    try:
        with Registry.open(path, write=False) as registry:
            return bool(registry.verify())
    except RegistryError as error:
        return "damaged" in error.message


def test_verify_names_the_record_that_was_changed(path):
    changed = "UPDATE records SET seconds = '[1e-9]' WHERE rowid = 3"
    alter(path, "DROP TRIGGER records_are_immutable", changed)
    with Registry.open(path) as registry:
        (complaint,) = registry.verify()
    assert complaint.startswith("records: ")
    assert "not as it was written" in complaint
    assert "the registry" not in complaint  # which whoever asks names once, for all complaints


def test_verify_names_rows_whose_target_is_gone(path):
    alter(path, "PRAGMA foreign_keys = OFF", "DELETE FROM targets")
    with Registry.open(path) as registry:
        assert "records: 100 lack their targets" in registry.verify()


def test_a_newer_schema_is_refused(path):
    alter(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    assert "newer ansor-deploy" in refused(path)
    assert "newer ansor-deploy" in refused(path, write=False)


@pytest.mark.parametrize("statement", ["PRAGMA application_id = 7", "PRAGMA user_version = 3"])
def test_another_programs_file_is_refused_and_left_alone(tmp_path, statement):
    path = tmp_path / "other.db"
    alter(path, "CREATE TABLE theirs (x)", statement)
    before = path.read_bytes()
    assert "not a registry" in refused(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("table", ["theirs", "tunings"])
@pytest.mark.parametrize("write", [True, False])
def test_tables_without_a_schema_are_left_as_they_are(tmp_path, table, write):
    path = tmp_path / "registry.db"
    alter(path, f"PRAGMA application_id = {APPLICATION_ID}", f"CREATE TABLE {table} (x)")
    before = path.read_bytes()
    assert "no registry has schema 0" in refused(path, write=write)
    assert path.read_bytes() == before


def test_a_full_disk_loses_only_the_batch(path):
    with Registry.open(path) as registry:
        before = registry.stats()
        pages = registry._connection.execute("PRAGMA page_count").fetchone()[0]
        registry._connection.execute(f"PRAGMA max_page_count = {pages}")
        batch = [measurement(key(), 1e-3) for _ in range(5000)]
        with pytest.raises(MachineError, match="no space left") as caught:
            registry.add_batch(batch, [])
        assert "free some" in caught.value.hint
        assert registry.stats() == before
        registry._connection.execute("PRAGMA max_page_count = 1000000")
        registry.add_batch(batch, [])
        assert registry.stats()["measurements"] == 5100
        assert registry.verify() == []


@pytest.mark.parametrize("replaced", [False, True])
def test_a_registry_that_was_moved_while_it_was_in_use(path, replaced):
    with Registry.open(path) as registry:
        path.rename(path.with_name("elsewhere.db"))
        if replaced:
            shutil.copy(path.with_name("elsewhere.db"), path)
        with pytest.raises(RegistryError, match="was moved, removed or replaced") as caught:
            registry.add_batch([measurement(key(1), 1e-3)], [])
    assert "not writable" not in caught.value.message
