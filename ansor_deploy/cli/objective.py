"""`--objective` and `--goal`: what a tuning run of one or several models makes small."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..objectives import Goal, Objective, make_objective

if TYPE_CHECKING:
    from ..request import TuneResult


def chosen_objective(
    name: str | None, goals: Sequence[tuple[str, float]], models: Sequence[Path]
) -> Objective:
    """The objective of these words; a model is called by its path, its file or its stem.

    UsageError where a goal is of no model or of two, or where the words contradict each other.
    """
    if goals and name not in {None, "goal"}:
        raise UsageError(
            f"--goal and --objective {name} contradict each other",
            "leave --objective out: a goal implies --objective goal",
        )
    if name == "goal" and not goals:
        raise UsageError("--objective goal needs a goal", "write it like --goal net.onnx=5ms")
    seconds = [0.0] * len(models)
    for model, latency in goals:
        seconds[_index(model, models)] = latency
    return make_objective("goal" if goals else name or "latency", seconds)


def missed_goals(result: TuneResult, objective: Objective, models: Sequence[Path]) -> list[str]:
    """A sentence for each model that is slower than its goal."""
    from ..report.text import latency

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
    raise UsageError(
        f"--goal {name}=... is of {fault}",
        f"the models are: {', '.join(map(str, models))}",
    )
