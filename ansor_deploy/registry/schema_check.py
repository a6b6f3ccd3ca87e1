"""Check that a SQLite file declares the schema of a registry and nothing else.

A trigger, a view instead of a table, a generated column, and an index or CHECK with an expression
are code in the file, which SQLite runs when a row is read or written. So only the catalogue,
`sqlite_schema`, is read before this check.
"""

import re
import sqlite3
from contextlib import closing
from functools import cache

from ..system.environment import shipped
from ..system.untrusted import quoted

_NAMED = 5  # the most names in a message
_CATALOGUE = "SELECT sql, name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
# The table of applied migrations, as releases of sqlite-utils declare it. A foreign file's is not
# read.
_MIGRATIONS = re.compile(
    r'CREATE (TABLE|UNIQUE INDEX) "(idx_)?_sqlite_migrations\w*" '
    r'(ON "_sqlite_migrations" )?\([\w", ]*\)'
)
# Declarations that users may add to their own registry: other tables and views, and indexes of
# plain columns.
_ADDED = re.compile(r"""CREATE (?:TABLE|VIEW) ["'`\[]?(\w+).*""")
_PLAIN_INDEX = re.compile(r'CREATE INDEX "?\w+"? ON "?\w+"? ?\([\w", ]+\)')


@cache
def declared() -> tuple[str, ...]:
    """The statements of the schema, in order."""
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.executescript((shipped("registry") / "schema.sql").read_text(encoding="utf-8"))
        return tuple(sql for sql, _ in memory.execute(_CATALOGUE))


def strange(connection: sqlite3.Connection, *, own: bool) -> list[str]:
    """The names of declarations that the schema does not have, safe to print.

    own: for the user's own registry, where other tables, views and indexes of columns are allowed.
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
    line = " ".join(sql.split())  # comments stay: what looks like one may be inside quotes
    added = _ADDED.fullmatch(line)
    by_user = _PLAIN_INDEX.fullmatch(line) or (added and added[1].lower() not in ours)
    return bool(_MIGRATIONS.fullmatch(line) or (own and by_user))


def _plain(sql: str) -> str:
    """A statement without comments and line breaks, which differ from release to release."""
    return " ".join(re.sub(r"--[^\n]*", " ", sql).split())
