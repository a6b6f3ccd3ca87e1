"""An open registry file: queries, and transactions that write."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typing_extensions import Self

from ..system.ownership import others_may_write
from .connect import BUSY_SECONDS, connect, transaction
from .faults import DamagedError, explained
from .rows_of_others import check_row
from .schema import UNREADABLE, Table

_CHUNK = 1000  # rows read at a time, so that no lock is held while they are processed


class Database:
    """An open file, to be used by one thread and closed (or used in `with`).

    Every method raises RegistryError if the file is damaged, locked, full or not writable. A
    violated constraint is a bug of the caller, and raises sqlite3.IntegrityError.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self.is_shared = others_may_write(path)

    @classmethod
    def open(cls, path: Path, *, write: bool = True, busy_seconds: float = BUSY_SECONDS) -> Self:
        """Open a registry. A missing one is created, or, without `write`, opened as an empty one.

        busy_seconds: how long to wait for another process's transaction.
        """
        return cls(connect(path, write=write, busy_seconds=busy_seconds), path)

    @classmethod
    def open_cache(cls, path: Path) -> Self:
        """Open a file with the tables of a registry that may be lost, or create it.

        It is made by no migrations, which take longer.
        """
        return cls(connect(path, write=True, lasts=False), path)

    def close(self) -> None:
        """Close the file; everything that was added is on disk already."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def rows(
        self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()
    ) -> list[dict[str, Any]]:
        """The rows that a statement finds, each as a dict by column names."""
        with explained(self.path):
            cursor = self._connection.execute(sql, values)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def nouns(self, table: Table, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        """The nouns of the rows that a statement finds in a table."""
        return [self.noun(table, row) for row in self.rows(sql, values)]

    def noun(self, table: Table, row: Mapping[str, Any]) -> Any:
        """The noun of a row; DamagedError if it cannot be read, or is not as it was written.

        RegistryError if others may write the file, and no bundle could bring such a row.
        """
        noun = self.decoded(table.read, row, table.columns[0].name)
        if self.is_shared:
            check_row(self.path, table, row, noun)
        return noun

    def walk(
        self, table: str, where: str = "TRUE", values: Sequence[Any] = ()
    ) -> Iterator[dict[str, Any]]:
        """Rows in the order they were added; no lock is held between two chunks."""
        sql = (
            f"SELECT rowid AS position, * FROM {table} WHERE {where} AND rowid > ? "  # noqa: S608
            f"ORDER BY rowid LIMIT {_CHUNK}"
        )
        last = 0
        while rows := self.rows(sql, (*values, last)):
            yield from rows
            last = rows[-1]["position"]

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection, in a transaction: all of it or nothing."""
        with explained(self.path), transaction(self._connection):
            yield self._connection

    def write(self, sql: str, rows: Iterable[Sequence[Any] | Mapping[str, Any]]) -> None:
        """Run a statement for each row, in one transaction."""
        with self.writing() as run:
            run.executemany(sql, rows)

    def decoded(self, read: Callable[[Any], Any], row: Mapping[str, Any], name: str) -> Any:
        """The result of `read` on a row; DamagedError if it fails. name: the column to cite."""
        try:
            return read(row)
        except UNREADABLE as error:
            raise DamagedError(
                self.path, f"row {str(row[name])[:12]} cannot be read: {error}"
            ) from error
