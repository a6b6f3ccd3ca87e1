"""What a registry declares, and whether a SQLite file declares that and no more.

A trigger, a view in a table's place, a generated column, an index or a CHECK over an expression are
code in the file, which SQLite runs when a row is read or written. So nothing but the catalogue,
`sqlite_schema`, is looked at before this.
"""

import re
import sqlite3
from contextlib import closing
from functools import cache

from ..system.environment import shipped
from ..system.untrusted import quoted

_NAMED = 5  # in a message
_CATALOGUE = "SELECT sql, name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
# Which steps were taken, as releases of sqlite-utils spell it. Of a foreign file it is not read.
_MIGRATIONS = re.compile(
    r'CREATE (TABLE|UNIQUE INDEX) "(idx_)?_sqlite_migrations\w*" '
    r'(ON "_sqlite_migrations" )?\([\w", ]*\)'
)
# What users add to a registry of their own: it says nothing about our tables, or nothing but names
# of columns.
_ADDED = re.compile(r"""CREATE (?:TABLE|VIEW) ["'`\[]?(\w+).*""")
_PLAIN_INDEX = re.compile(r'CREATE INDEX "?\w+"? ON "?\w+"? ?\([\w", ]+\)')


@cache
def declared() -> tuple[str, ...]:
    """The statements of the schema, in their order."""
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.executescript((shipped("registry") / "schema.sql").read_text(encoding="utf-8"))
        return tuple(sql for sql, _ in memory.execute(_CATALOGUE))


def strange(connection: sqlite3.Connection, *, own: bool) -> list[str]:
    """Names of what the schema does not declare, safe to print.

    own: of the user's registry, where other tables, views and indexes of columns are let be.
    """
    ours = set(map(_plain, declared()))
    names = {match[1].lower() for match in map(_ADDED.fullmatch, ours) if match}
    return [
        quoted(name)
        for sql, name in connection.execute(_CATALOGUE)
        if _plain(str(sql)) not in ours and not _harmless(str(sql), names, own=own)
    ]


def named(found: list[str]) -> str:
    """The first few of `strange`, for a message."""
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{', '.join(found[:_NAMED])}{more}"


def _harmless(sql: str, ours: set[str], *, own: bool) -> bool:
    line = " ".join(sql.split())  # with its comments: what looks like one may be within quotes
    added = _ADDED.fullmatch(line)
    by_user = _PLAIN_INDEX.fullmatch(line) or (added and added[1].lower() not in ours)
    return bool(_MIGRATIONS.fullmatch(line) or (own and by_user))


def _plain(sql: str) -> str:
    """A statement without comments and line breaks, which differ from release to release."""
    return " ".join(re.sub(r"--[^\n]*", " ", sql).split())
