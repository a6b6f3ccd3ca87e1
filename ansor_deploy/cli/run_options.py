"""Options of the commands that run a library to see how fast it is."""

import click

from .declare import Decorator, number_option
from .values import parse_duration

threads_option = number_option(
    "--threads",
    0,
    "Threads of a run; 0 for those of its preset, else as many as the target has cores.",
)


def seconds_option(what: str, default: str = "2s") -> Decorator:
    """How long to run it, as `run_seconds`. what: the option's help."""
    return click.option(
        "--time",
        "run_seconds",
        type=parse_duration,
        default=default,
        metavar="10s",
        help=f"{what}  [default: {default}]",
    )
