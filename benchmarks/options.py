"""Options and helpers that several benchmarks share."""

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
    """Values of one type, separated by commas."""

    name = "list"

    def __init__(self, each: Any = str) -> None:
        self._each = click.types.convert_type(each)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[Any]:
        """The list of values; a default is a list already."""
        if not isinstance(value, str):
            return list(value)
        return [self._each.convert(one, param, ctx) for one in value.split(",")]


def number(name: str, default: float, text: str = "") -> Any:
    """An option for a number of the type of its default."""
    return click.option(name, default=default, show_default=True, help=text)


def target(name: str, threads: int | None = None) -> Target:
    """A target of this project or a shipped one, with at most so many of its cores."""
    from ansor_deploy.project import Project
    from ansor_deploy.target import load_target

    found = load_target(name, Project.find().target_path())
    return replace(found, cores=min(threads or found.cores, found.cores))


def cores() -> int:
    """The number of cores that this process may use, which in a container may be fewer than all."""
    return len(os.sched_getaffinity(0))


def crowd() -> float:
    """How many programs compete for each core, at least 1: time limits are multiplied by it."""
    return max(1.0, os.getloadavg()[0] / cores())


def save(found: Any, file: Path | None) -> None:
    """Write results as JSON, if a file was asked for."""
    if file:
        file.write_text(json.dumps(found, indent=2, default=str) + "\n", encoding="utf-8")


def python(*words: str, **environment: str) -> str:
    """The output of a process of this Python; CalledProcessError, with stderr, where it fails."""
    command, env = [sys.executable, *words], os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout


def untuned(model: Path, *options: str, **environment: str) -> Path:
    """Build a library with default schedules beside a model, and return its path."""
    library = model.with_suffix(".so")
    words = ["build", str(model), "-o", str(library), "--trials", "0", "--beside", "none"]
    words += ["--registry", str(model.with_suffix(".db")), "--quiet", *options]
    python("-m", "ansor_deploy", *words, **environment)
    return library


def cpu_seconds() -> float:
    """The CPU seconds of all child processes that have ended.

    Other work on the machine changes them less than wall-clock time.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def progress(line: str) -> None:
    """Print a line of progress on stderr."""
    print(line, file=sys.stderr, flush=True)
