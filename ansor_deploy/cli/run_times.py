"""`ansor-deploy bench --times`: the time of each run in a file, as CSV or JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from ..system.atomic_file import write_whole
from .declare import new_file

if TYPE_CHECKING:
    from ..ship.race.timing import Timing


def _checked(ctx: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a name that does not say which format is meant, before anything is timed."""
    if path and path.suffix not in (".csv", ".json"):
        raise UsageError(f"--times: {path} is no .csv or .json", "end its name with one of them")
    return path


times_option = click.option(
    "--times",
    "times",
    type=new_file,
    callback=_checked,
    help="Write the time of each run to this file, .csv or .json.",
)


def write_times(path: Path, timed: Iterable[Timing]) -> None:
    """Write the milliseconds of each run in the order of the runs, shape by shape.

    A stream's runs come before the next one's.
    """
    shapes = [(one.interface.input_shapes, _ms(one.seconds)) for one in timed]
    if path.suffix == ".json":
        content = json.dumps({"times": [{"inputs": one, "ms": ms} for one, ms in shapes]})
        write_whole(path, content.encode())
        return
    text = StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("inputs", "ms"))
    table.writerows((_text(inputs), run) for inputs, ms in shapes for run in ms)
    write_whole(path, text.getvalue().encode())


def _ms(seconds: Iterable[float]) -> list[float]:
    """Milliseconds, to the nanosecond."""
    return [round(1e3 * one, 6) for one in seconds]


def _text(inputs: dict[str, Any]) -> str:
    """A shape of all inputs, such as "x=1,3,8,8 n=1"."""
    return " ".join(f"{name}={','.join(map(str, shape))}" for name, shape in inputs.items())
