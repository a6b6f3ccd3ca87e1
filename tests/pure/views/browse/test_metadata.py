"""What Datasette is told of a registry is true of every table, column and query."""

import sqlite3
from contextlib import closing

import pytest
from datasette.utils import parse_metadata
from helpers.registry_samples import key

from ansor_deploy.system.environment import shipped


@pytest.fixture(scope="module")
def described():
    text = (shipped("registry") / "datasette.yml").read_text()
    return parse_metadata(text)["databases"]["registry"]


def test_every_table_and_column_is_described(filled, described):
    with closing(sqlite3.connect(filled)) as raw:
        names = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        tables = {row[0] for row in raw.execute(names)} - {"sqlite_sequence"}
        assert set(described["tables"]) == tables
        for name, said in described["tables"].items():
            columns = raw.execute("SELECT name, type FROM pragma_table_info(?)", (name,))
            types = dict(columns.fetchall())
            if said.get("hidden"):
                continue
            assert "BLOB" not in types.values(), name
            assert set(said["columns"]) == set(types), name
            used = {*said.get("sortable_columns", []), *said.get("facets", [])}
            used |= {said[word] for word in ("sort_desc", "label_column") if word in said}
            assert used <= set(types), name


def test_every_query_runs(filled, described):
    from ansor_deploy.views.browse.plugin import prepare_connection  # loads all of Datasette

    given = {"op": "conv", "key": key(0).workload[:8]}
    with closing(sqlite3.connect(filled)) as raw:
        prepare_connection(raw)
        found = {
            n: raw.execute(q["sql"], given).fetchall() for n, q in described["queries"].items()
        }
    assert {name: len(rows) for name, rows in found.items()} == {
        "best": 20,
        "missing": 0,
        "failures": 1,
        "history": 6,
        "shared": 5,
    }
