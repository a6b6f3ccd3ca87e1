"""`ansor-deploy tune`: fill the registry, apart from any build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import BudgetError
from ..objectives import OBJECTIVES
from .helptext import examples
from .messages import message_format_option
from .objective import chosen_objective, missed_goals
from .options import (
    budget_options,
    json_option,
    lock_option,
    model_file,
    place_options,
    request_options,
)
from .output import print_json, stdout_kept_clean
from .values import LatencyGoal

if TYPE_CHECKING:
    from ..request import Request


@click.command(
    "tune",
    epilog=examples(
        "tune resnet18.onnx --time 1h",
        "tune resnet18.onnx bert.onnx --trials 2000 --objective speedup",
        "tune resnet18.onnx bert.onnx --goal resnet18.onnx=5ms",
        "tune resnet18.onnx --effort thorough --min-impact 1%",
        "tune resnet18.onnx --lock records.lock",
    ),
)
@click.argument("models", type=model_file, nargs=-1, required=True)
@request_options
@budget_options
@place_options
@click.option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    help="What of several models counts.  [default: latency, or goal where one is given]",
)
@click.option(
    "--goal",
    "goals",
    type=LatencyGoal(),
    multiple=True,
    metavar="MODEL=5ms",
    help="A latency that is good enough for a model. Repeatable.",
)
@lock_option
@json_option
@message_format_option
@click.pass_context
def command(
    ctx: click.Context,
    models: tuple[Path, ...],
    request: Request,
    objective: str | None,
    goals: tuple[tuple[str, float], ...],
    lock: Path | None,
    as_json: bool,
    message_format: str,
) -> None:
    """Fill the registry for models, without building.

    Interrupt it at will: what was measured is kept, and the same command resumes.

    Of several models, the objective "latency" makes the sum of their latencies small, "goal" only
    what is above their goals, and "speedup" makes the geometric mean of their speed-ups large;
    "early-stop" is as "latency", but leaves a task at the first batch that brings nothing. Exits
    7 if a goal is missed.

    A lock keeps the records for builds with --frozen. What it says of other models' tasks stays.
    """
    from ..pipeline import tune
    from ..report.choose import report_on_stderr
    from ..report.text import tune_summary

    chosen = chosen_objective(objective, goals, models)
    with stdout_kept_clean(), report_on_stderr(as_json, message_format=message_format) as report:
        result = tune(list(models), replace(request, objective=chosen, lock=lock), report)
        missed = missed_goals(result, chosen, models)
        for sentence in missed:
            report.warn(sentence)
    if as_json:
        print_json(result.with_rounds())
    else:
        click.echo(tune_summary(result))
    if missed:
        ctx.exit(BudgetError.exit_code)
