"""Open a registry file safely: create, check, or refuse."""

import os
import runpy
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import RegistryError
from ..system.environment import shipped
from ..system.ownership import foreign_owner, others_may_change
from .faults import DamagedError, explained
from .schema_check import declared, named, strange

APPLICATION_ID = 0x416E7344  # "AnsD", in the file's header
SCHEMA_VERSION = 1  # steps of registry/migrations.py
BUSY_SECONDS = 30.0
SYNCHRONOUS = "FULL"  # what is committed survives a power cut
SQLITES_LOCKS = (512, 0x40000000)  # the bytes of the file that SQLite locks: length, start
# Of a folder that is made for a registry. With an umask of 002, as where each user has a group, a
# group might else write to it, and the registry would count as shared.
_OURS = 0o755
_SMALLEST = 512  # bytes of the smallest page
_END_OF_A_NAME = bytes.fromhex("d9d505f920a163d7")  # ends a journal that names another file


def connect(
    path: Path, *, write: bool, busy_seconds: float = BUSY_SECONDS, lasts: bool = True
) -> sqlite3.Connection:
    """A connection to a registry; to an empty one in memory if there is no file to read.

    lasts: whether later versions bring the file up to date; they make others anew.

    RegistryError (exit 8) if the file is damaged, locked, of a newer tool, or not a registry.
    """
    with explained(path):
        check_regular(path)
        _check_journals(path)
        if write:
            _prepare(path)
        elif not path.exists() or path.stat().st_size == 0:
            return _empty()
        if path.exists() and 0 < path.stat().st_size < _SMALLEST:
            raise DamagedError(path, "it is too small to be one")  # SQLite would see an empty file
        connection = _connect(path, write=write, busy_seconds=busy_seconds)
        try:
            _check(connection, path, write=write, lasts=lasts)
            # Readers must not write, but may roll back a killed writer's transaction.
            connection.execute(f"PRAGMA query_only = {'OFF' if write else 'ON'}")
        except BaseException:
            connection.close()
            raise
        return connection


def check_regular(path: Path) -> None:
    """RegistryError where the path is not a regular file: a pipe or a device never ends."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return
    if not regular:
        raise RegistryError(
            f"the registry {path} cannot be opened: it is no regular file", "Name a file."
        )


def _check_journals(path: Path) -> None:
    """RegistryError where SQLite would roll back a journal beside the file that is not the tool's.

    A journal that names another file makes SQLite remove that file: only transactions over several
    files have such journals, and this tool never makes them. A journal by a user who may not write
    the registry would be written into it.
    """
    for ending in ("-journal", "-wal"):
        journal = Path(f"{os.path.realpath(path)}{ending}")
        check_regular(journal)
        with suppress(FileNotFoundError, NotADirectoryError), journal.open("rb") as stream:
            stream.seek(max(0, journal.stat().st_size - len(_END_OF_A_NAME)))
            if stream.read() == _END_OF_A_NAME:
                raise _strange(journal, "it names another file")
            may_write = path.exists() and others_may_change(path)
            if (owner := foreign_owner(journal)) and not may_write:
                raise _strange(journal, f"{owner} put it there, who may not write the registry")


def _strange(journal: Path, why: str) -> RegistryError:
    what = f"{journal} was not written by ansor-deploy: {why}"
    return RegistryError(what, "Find out who made it, and remove it.")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that takes the write lock at once, so that two writers queue up.

    Inside another transaction, it is a part of that.
    """
    if connection.in_transaction:
        yield
        return
    _begin(connection)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        _roll_back(connection)


def _roll_back(connection: sqlite3.Connection) -> None:
    """End a transaction, if SQLite itself has not: it does after some faults of the machine."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _begin(connection: sqlite3.Connection) -> None:
    """Take the write lock, waiting as long as the connection's busy timeout says.

    SQLite itself would try the lock ten times a second. Where other writers commit without pause,
    that rarely finds it free; trying often and at random times is fair to all.
    """
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()  # milliseconds
    deadline = time.monotonic() + patience / 1000
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        while not connection.in_transaction:
            last = time.monotonic() > deadline
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if last or "locked" not in str(error):
                    raise
                from random import uniform

                time.sleep(uniform(0.001, 0.01))  # noqa: S311 - no security depends on it
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")


def _prepare(path: Path) -> None:
    """Make the folder, and raise early the errors that SQLite would raise at the first write."""
    path.parent.mkdir(_OURS, parents=True, exist_ok=True)
    for place in (path.parent, path):  # the rollback journal is made in the folder
        if place.exists() and not os.access(place, os.W_OK):
            raise RegistryError(
                f"the registry {path} is not writable: no permission to write to {place}",
                "Change the permissions, or name another registry with --registry PATH.",
            )


def _empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    _create(connection, Path(":memory:"), _declare)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _connect(path: Path, *, write: bool, busy_seconds: float) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode={'rwc' if write else 'rw'}"
    connection = sqlite3.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
    connection.execute("PRAGMA trusted_schema = OFF")  # a registry may come from someone else
    connection.execute("PRAGMA cell_size_check = ON")  # finds damaged pages when they are read
    return connection


def _check(connection: sqlite3.Connection, path: Path, *, write: bool, lasts: bool) -> None:
    connection.execute("BEGIN")  # otherwise another process may create it between two queries
    try:
        version = version_of(connection, path)
        found = strange(connection, own=True)
    finally:
        _roll_back(connection)
    if found:
        raise DamagedError(path, f"its declaration of {named(found)} is not that of a registry")
    if version < SCHEMA_VERSION:
        _create(connection, path, _migrate if lasts else _declare)
    if write:
        # WAL is faster, but in SQLite before 3.51.3 two processes can corrupt it.
        connection.execute("PRAGMA journal_mode = DELETE")


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The schema version of a file; 0 for an empty one.

    RegistryError if it is no registry, or a newer tool's.
    """
    queries = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema")
    identity, version, tables = (connection.execute(query).fetchone()[0] for query in queries)
    if identity != APPLICATION_ID and (identity or version or tables):
        raise RegistryError(
            f"{path} is a SQLite file but not a registry",
            "Name a registry with --registry PATH, or a path where there is no file yet.",
        )
    if version > SCHEMA_VERSION:
        raise RegistryError(
            f"the registry {path} was written by a newer ansor-deploy "
            f"(schema {version}; this one knows {SCHEMA_VERSION})",
            "Update ansor-deploy, or name another registry with --registry PATH.",
        )
    if tables and version < SCHEMA_VERSION:
        raise DamagedError(path, f"no registry has schema {version}")
    return int(version)


def _create(
    connection: sqlite3.Connection, path: Path, make: Callable[[sqlite3.Connection], None]
) -> None:
    """Make the tables, indexes, views and trigger of a registry, and mark the file as one."""
    with transaction(connection):
        # Another process may have done so since the version was read, before this lock.
        if version_of(connection, path) < SCHEMA_VERSION:
            make(connection)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _migrate(connection: sqlite3.Connection) -> None:
    """Run the migrations of `registry/migrations.py`, which the file then lists."""
    from sqlite_utils import Database  # half a second of processor time: it loads NumPy

    steps = runpy.run_path(str(shipped("registry") / "migrations.py"))["migrations"]
    steps.apply(Database(connection, execute_plugins=False))


def _declare(connection: sqlite3.Connection) -> None:
    """Run the statements of `registry/schema.sql` alone."""
    for statement in declared():
        connection.execute(statement)
