"""`ansor-deploy targets`: the machines that code can be generated for."""

from typing import Any

import click

from ..project import Project
from ..target import list_targets
from .helptext import with_examples
from .options import chosen_target
from .output import Answer, answering, in_columns


@with_examples("targets list", "targets show rpi3")
@click.group("targets")
def command() -> None:
    """List and show targets.

    A project's targets/ folder is searched before the shipped ones.
    """


@with_examples("targets list", "targets list --json")
@command.command("list")
@answering
def list_command() -> Answer:
    """Print the name and the file of every target."""
    rows = [(name, str(path)) for name, path in list_targets(Project.find().target_path()).items()]
    found = [{"name": name, "path": path} for name, path in rows]
    return Answer({"targets": found}, in_columns(rows))


@with_examples("targets show host", "targets show ./my-board.toml --json")
@command.command("show")
@click.argument("name")
@answering
def show_command(name: str) -> Answer:
    """Print every field of a target.

    What it extends, or detects on this machine, is filled in. NAME may be a path to a .toml file.
    """
    target = chosen_target(name)
    values = {**target.to_json(), "fingerprint": target.fingerprint}
    return Answer(values, in_columns(flattened(values)))


def flattened(values: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Keys and texts; a table's keys as "gpu.arch"; what is empty is left out."""
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            rows += flattened(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            rows.append((prefix + key, " ".join(map(str, value))))
        elif value is not None:
            rows.append((prefix + key, str(value)))
    return [row for row in rows if row[1]]
