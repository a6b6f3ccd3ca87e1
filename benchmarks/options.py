"""What several benchmarks take on their command lines, and do with it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ansor_deploy.target import Target

json_option = click.option("--json", "file", type=Path, help="Also write the numbers here.")
networks_argument = click.argument("networks", nargs=-1, required=True)


class Listed(click.ParamType):
    """Values of one type with commas between them."""

    name = "list"

    def __init__(self, each: Any = str) -> None:
        self._each = click.types.convert_type(each)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[Any]:
        """The values; a default is a list already."""
        if not isinstance(value, str):
            return list(value)
        return [self._each.convert(one, param, ctx) for one in value.split(",")]


def number(name: str, default: float, text: str = "") -> Any:
    """An option that takes a number of the type that its default has."""
    return click.option(name, default=default, show_default=True, help=text)


def target(name: str, threads: int | None = None) -> Target:
    """A target of this project, or one that ships; with at most so many of its cores."""
    from ansor_deploy.project import Project
    from ansor_deploy.target import load_target

    found = load_target(name, Project.find().target_path())
    return replace(found, cores=min(threads or found.cores, found.cores))


def cores() -> int:
    """The cores that this process may use, which in a container are not all there are."""
    return len(os.sched_getaffinity(0))


def crowd() -> float:
    """How many programs want each core, at least 1: limits in seconds are multiplied by it."""
    return max(1.0, os.getloadavg()[0] / cores())


def save(found: Any, file: Path | None) -> None:
    """Write numbers as JSON, where a file was asked for."""
    if file:
        file.write_text(json.dumps(found, indent=2, default=str) + "\n", encoding="utf-8")


def python(*words: str, **environment: str) -> str:
    """What a process of this Python prints, such as a command's; of an error, its stderr."""
    command, env = [sys.executable, *words], os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout


def untuned(model: Path, *options: str, **environment: str) -> Path:
    """The library of default schedules that `build` makes beside a model, with its registry."""
    library = model.with_suffix(".so")
    words = ["build", str(model), "-o", str(library), "--trials", "0", "--beside", "none"]
    words += ["--registry", str(model.with_suffix(".db")), "--quiet", *options]
    python("-m", "ansor_deploy", *words, **environment)
    return library


def cpu_seconds() -> float:
    """What processes that have ended took of processors: beside other work, less changes it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def progress(line: str) -> None:
    """Print a line of progress on stderr."""
    print(line, file=sys.stderr, flush=True)
