"""Options of commands that run a library to time it."""

import os

import click

from ..errors import UsageError
from ..system.words import count
from .declare import Decorator
from .values import parse_duration


def _at_most_all(ctx: click.Context, option: click.Parameter, threads: int) -> int:
    """Check --threads. UsageError where it exceeds the processors that this process may use."""
    if threads > (most := len(os.sched_getaffinity(0))):
        has = f"this process may use {count(most, 'processor')}, and a run takes a thread on each"
        raise UsageError(f"--threads {threads}: {has}", f"give --threads {most}, or fewer")
    return threads


threads_option = click.option(
    "--threads",
    type=click.IntRange(min=0),
    default=0,
    callback=_at_most_all,
    metavar="N",
    help="Threads of a run, at most one for each processor; 0: as the library's preset says, else "
    "as many as the target has cores.  [default: 0]",
)


def seconds_option(what: str, default: str = "2s") -> Decorator:
    """The option --time: how long to run, as `run_seconds`. what: its help."""
    return click.option(
        "--time",
        "run_seconds",
        type=parse_duration,
        default=default,
        metavar="10s",
        help=f"{what}  [default: {default}]",
    )
