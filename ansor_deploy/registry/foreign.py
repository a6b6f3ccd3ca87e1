"""Read a SQLite file of someone else, who may be hostile.

Nothing is written, not even beside the file: SQLite opens it as immutable, and neither locks it nor
rolls anything back. Instead this module takes the lock that a SQLite reader would take, and checks
that the file has no unfinished transaction, and is unchanged afterwards. No code in the file runs:
its declarations are compared with the schema before any row is read, and SQLite gets limits of size
and time.
"""

import fcntl
import os
import random
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import RegistryError
from .connect import BUSY_SECONDS, SQLITES_LOCKS, check_regular, version_of
from .faults import ASK_FOR_A_BUNDLE, DamagedError, explained, in_use
from .schema_check import named, strange

PATIENCE = 10.0  # seconds that SQLite may take until the next row
MOST_BYTES = 1 << 28  # of all texts and blobs that are read: the limit of a bundle

_LOOK = 10_000  # steps of SQLite's virtual machine between two checks of the clock
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA)


class ForeignFile:
    """An open file that has the schema of a registry.

    own: the file is the user's own, who may have added tables. Every method raises RegistryError if
    the file is damaged or exceeds a limit.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, *, own: bool) -> None:
        self._connection, self._path = connection, path
        self._deadline, self._left = time.monotonic() + PATIENCE, MOST_BYTES
        connection.set_progress_handler(lambda: time.monotonic() > self._deadline, _LOOK)
        if not version_of(connection, path):
            raise DamagedError(path, "it is empty")
        if found := strange(connection, own=own):
            raise RegistryError(
                f"{path} is refused: its declaration of {named(found)} is not that of a registry",
                ASK_FOR_A_BUNDLE,
            )
        connection.set_authorizer(_authorized)

    def rows(self, table: str, sql: str) -> list[dict[str, Any]]:
        """The rows that a statement selects from a table, after a check of its pages and types."""
        (verdict,) = next(self._steps(f"PRAGMA quick_check('{table}')"))
        if verdict != "ok":
            raise DamagedError(self._path, str(verdict))
        return list(self._rows(sql))

    def _rows(self, sql: str) -> Iterator[dict[str, Any]]:
        for row in self._steps(sql):
            self._left -= sum(len(value) for value in row if isinstance(value, (str, bytes)))
            if self._left < 0:
                raise too_large(self._path)
            yield dict(zip(self._names, row, strict=True))

    def _steps(self, sql: str) -> Iterator[tuple[Any, ...]]:
        self._deadline = time.monotonic() + PATIENCE
        cursor = self._connection.execute(sql)
        self._names = [column[0] for column in cursor.description]
        for row in cursor:
            yield row
            self._deadline = time.monotonic() + PATIENCE


@contextmanager
def foreign_file(path: Path, *, own: bool = False) -> Iterator[ForeignFile]:
    """Open another's registry; the file is locked against writers meanwhile.

    RegistryError if it is not a registry, has a foreign schema, is being written, or changes.
    """
    try:
        with explained(path), _still(path) as real:
            uri = f"{real.as_uri()}?mode=ro&immutable=1"
            with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
                _confine(connection)
                yield ForeignFile(connection, path, own=own)
    except DamagedError as error:  # the file is not ours, so the hint is not to repair it
        raise RegistryError(error.text, ASK_FOR_A_BUNDLE) from error


def too_large(path: Path) -> RegistryError:
    """The error of a file that holds more than a bundle may."""
    what = f"{path} is refused: it holds more than {MOST_BYTES >> 20} MiB of records"
    return RegistryError(what, ASK_FOR_A_BUNDLE)


def _confine(connection: sqlite3.Connection) -> None:
    """Let SQLite trust nothing in the file, and limit the work that it does for it."""
    for setting in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
        connection.execute(f"PRAGMA {setting}")
    if sys.version_info >= (3, 11):  # Python 3.10 cannot set SQLite's limits
        for limit, most in (
            (sqlite3.SQLITE_LIMIT_LENGTH, 1 << 22),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1 << 14),
            (sqlite3.SQLITE_LIMIT_COLUMN, 64),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 64),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 8),
            (sqlite3.SQLITE_LIMIT_VDBE_OP, 10_000),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
            (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            connection.setlimit(limit, most)


def _authorized(action: int, *about: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


@contextmanager
def _still(path: Path) -> Iterator[Path]:
    """The file's real path, while no process writes to it through SQLite.

    RegistryError if it is no regular file, was left in the middle of a transaction, or was changed
    by other means meanwhile.
    """
    check_regular(path)
    real = Path(os.path.realpath(path))
    descriptor = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        before = _state(os.fstat(descriptor))
        _lock(descriptor, path)
        _check_finished(real, path)
        try:
            yield real
        finally:
            if _state(real.stat()) != before:
                raise RegistryError(f"{path} changes while it is read", "Try again.")
    finally:
        os.close(descriptor)


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _lock(descriptor: int, path: Path) -> None:
    """Wait until nobody writes, then block writers; does nothing where files cannot be locked."""
    deadline = time.monotonic() + BUSY_SECONDS
    with suppress(OSError):
        while not _locked(descriptor):
            if time.monotonic() > deadline:
                raise in_use(path)
            time.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - no security depends on it


def _locked(descriptor: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, *SQLITES_LOCKS)
    except BlockingIOError:
        return False
    return True


def _check_finished(real: Path, path: Path) -> None:
    """RegistryError where a writer has died: the file alone is not in a consistent state."""
    for ending in ("-journal", "-wal"):
        beside = real.with_name(real.name + ending)
        check_regular(beside)
        with suppress(FileNotFoundError), beside.open("rb") as stream:
            if stream.read(1) not in (b"", b"\0"):  # an empty or zeroed journal is finished
                hint = "Open it where it was made: `ansor-deploy registry stats --registry FILE`."
                raise RegistryError(f"{path} was left in the middle of a transaction", hint)
