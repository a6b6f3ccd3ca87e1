"""`ansor-deploy plan`: what a build would do, before it is done."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..request import Request
from ..views.plan import details as details_of
from ..views.plan import lines
from .declare import existing_file
from .helptext import Command, with_examples
from .options import plan_options, reuse_option
from .output import Answer, answering, is_verbose, quiet_option, report, verbose_option

if TYPE_CHECKING:
    from ..tune.plan import Plan


@with_examples(
    "plan resnet18.onnx",
    "plan resnet18.onnx bert.onnx --target host --effort quick",
    "plan resnet18.onnx --verbose",
    "plan resnet18.onnx --json",
)
@click.command("plan", cls=Command)
@click.argument("models", type=existing_file, nargs=-1, required=True)
@plan_options
@reuse_option
@quiet_option
@verbose_option("List every task with its nodes, what it is near to, and why it is tuned again.")
@answering
def command(models: tuple[Path, ...], request: Request) -> Answer:
    """Show what a build would reuse, tune or skip.

    Several models are planned as one: a task that they share is tuned once. A latency with ~ is
    an estimate; the others were measured.

    A task is known if its search is over; near if it was never measured, but others that differ in
    their sizes alone were: how far it is from the nearest is given in doublings. It is tuned again
    if its search has not ended, or ended under other conditions, as with other rules. One with too
    small a share of the time gets the default schedule.
    """
    from ..pipeline import plan

    with report(quiet=True) as events:
        made = plan(list(models), request, events)
    return Answer(made.to_json(), [*shown(made), *next_lines(models, request)])


def shown(made: Plan) -> list[str]:
    """The plan on a screen, or all of it."""
    if not is_verbose():
        return [line for line, _ in lines(made)]
    details = details_of(made)
    return [*(line for line, _ in lines(made, None)), *(["", *details, ""] if details else [])]


def next_lines(models: Sequence[Path], request: Request) -> list[str]:
    """The command that does what was planned, in the words that asked for the plan."""
    command = "build" if len(models) == 1 else "tune"
    if command == "tune" and request.reuse != "exact":
        return []  # it takes no such option
    given: list[str] = click.get_current_context().find_root().obj or ["plan", *map(str, models)]
    words = [word for word in given[1:] if word not in ("-v", "--verbose", "-q", "--quiet")]
    return [f"next     {shlex.join(['ansor-deploy', command, *words])}"]
