"""A registry of every past schema is brought up to date, and all of its rows can be read."""

import ast
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ansor_deploy.registry.connect import SCHEMA_VERSION
from ansor_deploy.registry.record import TaskKey
from ansor_deploy.registry.schema import TABLES
from ansor_deploy.registry.store import Registry

ASSETS = Path(__file__).parents[2] / "assets"
PAST = range(1, SCHEMA_VERSION)


def rows(path, table):
    return select(path, f"* FROM {table} ORDER BY rowid")


def keys_of(path):
    return [TaskKey(*row) for row in select(path, "DISTINCT workload, target FROM measurements")]


def select(path, what):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT {what}").fetchall()


@pytest.fixture(params=PAST, ids=lambda version: f"schema-{version}")
def old(request):
    return ASSETS / f"registry-schema-{request.param}.db"


@pytest.fixture
def copy(old, tmp_path):
    return Path(shutil.copy(old, tmp_path / "registry.db"))


def test_every_row_of_a_past_schema_can_be_read(old, copy):
    with Registry.open(copy) as registry:
        assert registry.verify() == []
        stats = registry.stats()
        keys = keys_of(old)
        best = registry.best(keys, select(old, "tvm FROM records")[0][0])
        measured = [m for key in keys for m in registry.measurements(key.target, key)]
        listed = registry.query()
    for table in ("workloads", "records", "measurements", "models", "builds"):
        assert stats[table] == len(rows(old, table)) > 0
    assert stats["failures"] > 0
    assert sorted(best) == sorted(keys)
    fastest = dict(select(old, "workload, min(latency) FROM records GROUP BY workload"))
    assert {key.workload: record.latency for key, record in best.items()} == fastest
    assert len(measured) == stats["measurements"]
    assert all(json.loads(measurement.trace) for measurement in measured)
    assert any(measurement.features for measurement in measured)
    assert len(listed) == len(keys)


def test_the_file_is_kept_as_it_was_beside_the_new_one(old, copy):
    Registry.open(copy).close()
    version = select(old, "* FROM pragma_user_version()")[0][0]
    kept = copy.with_name(f"registry.db.schema-{version}")
    for table in ("records", "measurements", "tunings", "searches"):
        assert rows(kept, table) == rows(old, table)
    assert select(copy, "* FROM pragma_user_version()") == [(SCHEMA_VERSION,)]


def test_the_declared_tables_are_those_that_the_migrations_make(tmp_path):
    with Registry.open(tmp_path / "new.db") as registry:
        tables = registry.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        assert {row["name"] for row in tables} == {
            *(table.name for table in TABLES),
            *("holders", "leases", "_sqlite_migrations"),  # which hold no knowledge
        }
        for table in TABLES:
            made = registry.rows("SELECT * FROM pragma_table_info(?)", (table.name,))
            assert [column.name for column in table.columns] == [row["name"] for row in made]
            assert [column.kind.sql for column in table.columns] == [declared(row) for row in made]


def declared(row):
    """The column as it was declared; a text that is a primary key is never NULL."""
    never_null = row["notnull"] or (row["pk"] and row["type"] == "TEXT")
    return row["type"] + " NOT NULL" * bool(never_null)


def test_what_older_rows_lack_is_what_sqlite_fills_in(tmp_path):
    with Registry.open(tmp_path / "new.db") as registry:
        for table in TABLES:
            made = registry.rows("SELECT * FROM pragma_table_info(?)", (table.name,))
            filled = {row["name"]: row["dflt_value"] for row in made}
            for column in table.columns:
                if column.since > 1:
                    assert column.default == ast.literal_eval(filled[column.name] or "None")


def test_a_migrated_registry_has_the_schema_of_a_new_one(copy, tmp_path):
    Registry.open(copy).close()
    Registry.open(tmp_path / "new.db").close()
    schema = "type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    assert unindented(select(copy, schema)) == unindented(select(tmp_path / "new.db", schema))


def unindented(rows):
    """SQLite keeps a statement's text, which other versions have indented in other ways."""
    return [[" ".join(str(value).split()) for value in row] for row in rows]
