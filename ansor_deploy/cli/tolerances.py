"""The options --rtol and --atol: how far outputs may differ, for one output or for all."""

from collections.abc import Sequence
from functools import partial, wraps
from typing import Any

import click

from ..request import Tolerance
from .declare import Command, together
from .values import parse_tolerance

Given = Sequence[tuple[str, float]]  # pairs of an output's name, "" for all others, and a tolerance


def with_tolerances(command: Command) -> Command:
    """Turn the options --rtol and --atol into the tolerances of a request."""

    @wraps(command)
    def call(rtol: Given, atol: Given, **words: Any) -> Any:
        return command(tolerances=tolerances_of(rtol, atol), **words)

    return call


def tolerances_of(rtol: Given, atol: Given) -> tuple[tuple[str, Tolerance], ...]:
    """The tolerance of each output that is named; "" is for all others."""
    relative, absolute = dict(rtol), dict(atol)
    return tuple(
        (name, Tolerance(relative.get(name, 0.0), absolute.get(name, 0.0)))
        for name in sorted(relative | absolute)
    )


_option = partial(click.option, type=parse_tolerance, multiple=True)
tolerance_options = together(
    _option(
        "--rtol",
        metavar="[OUTPUT=]1e-3",
        help="Allow elements of an output to differ by this share of their size, instead of what "
        "rounding explains. Repeatable.",
    ),
    _option(
        "--atol",
        metavar="[OUTPUT=]0.5",
        help="Allow elements of an output to differ by this number. Repeatable.",
    ),
    with_tolerances,
)
