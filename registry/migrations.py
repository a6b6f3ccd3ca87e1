"""The registry's schema, as the steps that lead to it: one SQL file a step, only ever added.

Loaded by path, and only when a registry has to be created or brought up to date. A step sets
`user_version` to its own number; `ansor_deploy.registry.connect.SCHEMA_VERSION` is the last one.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from sqlite3 import complete_statement

from sqlite_utils import Database, Migrations

migrations = Migrations("ansor-deploy")


def _apply(step: Path, db: Database) -> None:
    for statement in _statements(step.read_text(encoding="utf-8")):
        db.execute(statement)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, each by itself: `executescript` would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if complete_statement(statement):
            yield statement
            statement = ""


for _step in sorted(Path(__file__).parent.glob("[0-9]*.sql")):
    migrations(name=_step.stem)(partial(_apply, _step))
