"""The tables as Python declares them are those that a registry has."""

from ansor_deploy.registry.schema import TABLES
from ansor_deploy.registry.store import Registry


def test_the_declared_tables_are_those_of_the_schema(tmp_path):
    with Registry.open(tmp_path / "new.db") as registry:
        tables = registry.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        assert {row["name"] for row in tables} == {
            *(table.name for table in TABLES),
            *("holders", "leases"),  # which hold no knowledge
            "_sqlite_migrations",  # of sqlite-utils
        }
        for table in TABLES:
            made = registry.rows("SELECT * FROM pragma_table_info(?)", (table.name,))
            assert [column.name for column in table.columns] == [row["name"] for row in made]
            assert [column.kind.sql for column in table.columns] == [declared(row) for row in made]


def declared(row):
    """The column as it was declared; a text that is a primary key is never NULL."""
    never_null = row["notnull"] or (row["pk"] and row["type"] == "TEXT")
    return row["type"] + " NOT NULL" * bool(never_null)
