"""`ansor-deploy targets`: the machines that code can be generated for."""

from __future__ import annotations

from typing import Any

import click

from .helptext import examples
from .options import json_option
from .output import in_columns, print_json


@click.group("targets", epilog=examples("targets list", "targets show rpi3"))
def command() -> None:
    """List and show targets.

    A project's targets/ folder is searched before the shipped ones.
    """


@command.command("list", epilog=examples("targets list", "targets list --json"))
@json_option
def list_command(as_json: bool) -> None:
    """Print the name and the file of every target."""
    from ..project import Project
    from ..target import list_targets

    found = list_targets(Project.find().target_path())
    if as_json:
        rows = [{"name": name, "path": str(path)} for name, path in found.items()]
        print_json({"targets": rows})
    else:
        click.echo("\n".join(in_columns([(name, str(path)) for name, path in found.items()])))


@command.command(
    "show", epilog=examples("targets show host", "targets show ./my-board.toml --json")
)
@click.argument("name")
@json_option
def show_command(name: str, as_json: bool) -> None:
    """Print every field of a target.

    What it extends, or detects on this machine, is filled in. NAME may be a path to a .toml file.
    """
    from ..project import Project
    from ..target import load_target

    target = load_target(name, Project.find().target_path())
    values = {**target.to_json(), "fingerprint": target.fingerprint}
    if as_json:
        print_json(values)
    else:
        click.echo("\n".join(in_columns(flattened(values))))


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
