"""Options of commands on a registry: its file, or the open registry."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from .options import registry_option

Command = Callable[..., Any]


def limit_option(default: int, text: str) -> Callable[[Command], Command]:
    """How much of a table a command shows. text: what is limited."""
    words = f"{text}  [default: {default}]"
    return click.option(
        "--limit", type=click.IntRange(min=1), default=default, metavar="N", help=words
    )


def registry_path(command: Command) -> Command:
    """The command gets `registry`, a path: of the option, else the project's or the user's."""

    @registry_option
    @wraps(command)
    def with_path(registry: Path | None, **rest: Any) -> Any:
        from ..project import Project

        return command(registry=Project.find().registry_path(registry), **rest)

    return with_path


def opened(command: Command, *, write: bool = False) -> Command:
    """The command gets `store`, an open registry, which is closed when it returns."""

    @registry_path
    @wraps(command)
    def with_store(registry: Path, **rest: Any) -> Any:
        from ..registry.store import Registry

        with Registry.open(registry, write=write) as store:
            return command(store=store, **rest)

    return with_store
