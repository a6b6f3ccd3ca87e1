"""`ansor-deploy targets`: the machines that code can be generated for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from ..errors import AnsorError
from ..project import Project
from ..target import list_targets, load_target
from .helptext import Group, with_examples
from .output import Answer, answering, in_columns
from .requests import chosen_target


class Named(Struct, frozen=True):
    """A target in the list."""

    name: str
    path: Path
    description: str


class Targets(Struct, frozen=True):
    """The answer of `targets list --json`."""

    targets: list[Named]


@with_examples("targets list", "targets show rpi3")
@click.group("targets", cls=Group)
def command() -> None:
    """List and show targets.

    A project's targets/ folder is searched before the shipped ones.
    """


@with_examples("targets list", "targets list --json")
@command.command("list")
@answering
def list_command() -> Answer:
    """Print the name of every target, and what it is."""
    search_path = Project.find().target_path()
    targets = [
        Named(name, path, _description(path, search_path))
        for name, path in list_targets(search_path).items()
    ]
    rows = [(target.name, target.description) for target in targets]
    return Answer(Targets(targets), in_columns(rows))


@with_examples("targets show host", "targets show ./my-board.toml --json")
@command.command("show")
@click.argument("name")
@answering
def show_command(name: str) -> Answer:
    """Print every field of a target.

    Fields that it takes from another target, or detects on this machine, are filled in. NAME may be
    a path to a .toml file.
    """
    target = chosen_target(name)
    values = {**target.to_json(), "fingerprint": target.fingerprint}
    return Answer(values, in_columns(flattened(values)))


def _description(path: Path, search_path: Sequence[Path]) -> str:
    """A target's description; where its file cannot be read, the reason."""
    try:
        return load_target(str(path), search_path).description
    except AnsorError as error:
        return f"{path}: {error.message}"


def flattened(values: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Pairs of key and text, without those that are empty.

    The keys of a nested table are joined, as in "gpu.arch".
    """
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            rows += flattened(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            rows.append((prefix + key, " ".join(map(str, value))))
        elif value is not None:
            rows.append((prefix + key, str(value)))
    return [row for row in rows if row[1]]
