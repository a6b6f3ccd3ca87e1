"""`ansor-deploy plan`: what a build would do, before it is done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .helptext import examples
from .options import budget_options, json_option, model_file, request_options, reuse_option
from .output import print_json, stdout_kept_clean

if TYPE_CHECKING:
    from ..request import Request


@click.command(
    "plan",
    epilog=examples(
        "plan resnet18.onnx",
        "plan resnet18.onnx bert.onnx --target host --effort quick",
        "plan resnet18.onnx --json",
    ),
)
@click.argument("models", type=model_file, nargs=-1, required=True)
@request_options
@budget_options
@reuse_option
@json_option
def command(models: tuple[Path, ...], request: Request, as_json: bool) -> None:
    """Show what a build would reuse, tune or skip.

    Several models are planned as one: a task that they share is tuned once. A latency with ~ is
    an estimate; the others were measured. A task is near if it was never measured, but others that
    differ in their sizes alone were: how far it is from the nearest is told in doublings.
    """
    from ..pipeline import plan
    from ..report.plain import QuietReport
    from ..report.text import near_lines, plan_lines, plan_summary, stale_lines

    with stdout_kept_clean():
        result = plan(list(models), request, QuietReport())
    if as_json:
        print_json(result.to_json())
    else:
        told = [*plan_lines(result), *near_lines(result), plan_summary(result)]
        click.echo("\n".join([*told, *stale_lines(result)]))
