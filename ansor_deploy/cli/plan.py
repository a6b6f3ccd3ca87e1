"""`ansor-deploy plan`: what a build would do, before it is done."""

from pathlib import Path

import click

from ..report import text
from ..request import Request
from .helptext import Command, with_examples
from .options import existing_file, plan_options, reuse_option
from .output import Answer, answering, report


@with_examples(
    "plan resnet18.onnx",
    "plan resnet18.onnx bert.onnx --target host --effort quick",
    "plan resnet18.onnx --json",
)
@click.command("plan", cls=Command)
@click.argument("models", type=existing_file, nargs=-1, required=True)
@plan_options
@reuse_option
@answering
def command(models: tuple[Path, ...], request: Request) -> Answer:
    """Show what a build would reuse, tune or skip.

    Several models are planned as one: a task that they share is tuned once. A latency with ~ is
    an estimate; the others were measured. A task is near if it was never measured, but others that
    differ in their sizes alone were: how far it is from the nearest is given in doublings. A task
    that was tuned is tuned again if its search has not ended, or ended under other conditions, as
    with other rules.
    """
    from ..pipeline import plan

    with report() as events:
        made = plan(list(models), request, events)
    details = [*text.near_lines(made), *text.again_lines(made)]
    sums = [text.plan_summary(made), *text.plan_memory(made), *text.stale_lines(made)]
    return Answer(made.to_json(), [*text.plan_lines(made), *details, *sums])
