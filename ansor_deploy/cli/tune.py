"""`ansor-deploy tune`: fill the registry, apart from any build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import BudgetError, UsageError
from ..objectives import OBJECTIVES, Goal, Objective, make_objective
from ..report.text import latency, tune_summary
from ..request import Request
from .helptext import with_examples
from .options import existing_file, tuning_options
from .output import Answer, answering, message_format_option, report
from .values import parse_goal

if TYPE_CHECKING:
    from ..build.result import TuneResult


@with_examples(
    "tune resnet18.onnx --time 1h",
    "tune resnet18.onnx bert.onnx --trials 2000 --objective speedup",
    "tune resnet18.onnx bert.onnx --goal resnet18.onnx=5ms",
    "tune resnet18.onnx --effort thorough --min-impact 1%",
    "tune resnet18.onnx --retune all --time 1h",
    "tune resnet18.onnx --lock records.lock",
)
@click.command("tune")
@click.argument("models", type=existing_file, nargs=-1, required=True)
@tuning_options
@click.option(
    "--objective",
    "chosen",
    type=click.Choice(OBJECTIVES),
    help="What of several models counts.  [default: latency, or goal where one is given]",
)
@click.option(
    "--goal",
    "goals",
    type=parse_goal,
    multiple=True,
    metavar="MODEL=5ms",
    help="A latency that is good enough for a model. Repeatable.",
)
@answering
@message_format_option
def command(
    models: tuple[Path, ...],
    chosen: str | None,
    goals: tuple[tuple[str, float], ...],
    request: Request,
) -> Answer:
    """Fill the registry for models, without building.

    Interrupt it at will: what was measured is kept, and the same command resumes.

    Of several models, the objective "latency" makes the sum of their latencies small, "goal" only
    what is above their goals, and "speedup" makes the geometric mean of their speed-ups large;
    "early-stop" is as "latency", but leaves a task at the first batch that brings nothing. Exits
    7 if a goal is missed.

    A lock keeps the records for builds with --frozen. What it says of other models' tasks stays.
    """
    from ..pipeline import tune

    objective = chosen_objective(chosen, goals, models)
    with report() as events:
        result = tune(list(models), replace(request, objective=objective), events)
        missed = missed_goals(result, objective, models)
        for sentence in missed:
            events.warn(sentence)
    exit_code = BudgetError.exit_code if missed else 0
    return Answer(result.with_rounds(), [tune_summary(result)], exit_code)


def chosen_objective(
    name: str | None, goals: Sequence[tuple[str, float]], models: Sequence[Path]
) -> Objective:
    """The objective of these words; a model is called by its path, its file or its stem.

    UsageError where a goal is of no model or of two, or where the words contradict each other.
    """
    if goals and name not in {None, "goal"}:
        hint = "leave --objective out: a goal implies --objective goal"
        raise UsageError(f"--goal and --objective {name} contradict each other", hint)
    if name == "goal" and not goals:
        raise UsageError("--objective goal needs a goal", "write it like --goal net.onnx=5ms")
    seconds = [0.0] * len(models)
    for model, goal in goals:
        seconds[_index(model, models)] = goal
    return make_objective("goal" if goals else name or "latency", seconds)


def missed_goals(result: TuneResult, objective: Objective, models: Sequence[Path]) -> list[str]:
    """A sentence for each model that is slower than its goal."""
    if not isinstance(objective, Goal):
        return []
    times = zip(models, result.latencies_ms, objective.goals, strict=True)
    return [
        f"{model} takes about {latency(now / 1e3)} a run, its goal is {latency(goal)}"
        for model, now, goal in times
        if goal and now > goal * 1e3
    ]


def _index(name: str, models: Sequence[Path]) -> int:
    found = [k for k, model in enumerate(models) if name in {str(model), model.name, model.stem}]
    if len(found) == 1:
        return found[0]
    fault = "several of the models" if found else "no model given"
    hint = f"the models are: {', '.join(map(str, models))}"
    raise UsageError(f"--goal {name}=... is of {fault}", hint)
