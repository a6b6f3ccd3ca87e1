"""The registry's schema, as the steps that lead to it: steps are only ever added.

Loaded by path, and only where a registry is to be created or brought up to date, in a transaction.
`ansor_deploy.registry.connect.SCHEMA_VERSION` is the number of steps.
"""

from sqlite_utils import Database, Migrations

from ansor_deploy.registry.schema_check import declared

migrations = Migrations("ansor-deploy")


@migrations()
def schema_1(db: Database) -> None:
    """The tables, indexes, views and trigger of schema.sql."""
    for statement in declared():
        db.execute(statement)
