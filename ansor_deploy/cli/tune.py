"""`ansor-deploy tune`: fill the registry without building."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from ..errors import BudgetError, UsageError
from ..request import OBJECTIVES, Goal, Objective, Request, make_objective
from ..system.words import count
from ..views.text import jobs_lines, latency, tune_summary
from .declare import existing_file
from .helptext import Command, with_examples
from .options import tuning_options
from .output import Answer, answering, message_format_option, report, verbose_option
from .values import parse_goal

if TYPE_CHECKING:
    from ..tune.result import Packed


@with_examples(
    "tune resnet18.onnx --time 1h",
    "tune resnet18.onnx bert.onnx --trials 2000 --objective speedup",
    "tune resnet18.onnx bert.onnx --goal resnet18.onnx=5ms",
    "tune resnet18.onnx --effort thorough --min-impact 1%",
    "tune resnet18.onnx --retune all --time 1h",
    "tune resnet18.onnx --lock records.lock",
    "tune a.onnx --target rpi3 --target host --farm tcp://farm:8786",
    "tune resnet18.onnx --target h100 --pack out/",
)
@click.command("tune", cls=Command)
@click.argument("models", type=existing_file, nargs=-1, required=True)
@tuning_options
@click.option(
    "--objective",
    "chosen",
    type=click.Choice(OBJECTIVES),
    help="What to improve for several models.  [default: latency, or goal if one is given]",
)
@click.option(
    "--goal",
    "goals",
    type=parse_goal,
    multiple=True,
    metavar="MODEL=5ms",
    help="A latency that is good enough for this model. Repeatable.",
)
@click.option(
    "--pack",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Measure nothing here. Read the results that are in this folder, and write new candidates "
    "for the target's machine to it.",
)
@verbose_option("Show how long steps take, the whole plan, and what rules print.")
@answering
@message_format_option
def command(
    models: tuple[Path, ...],
    chosen: str | None,
    goals: tuple[tuple[str, float], ...],
    folder: Path | None,
    requests: list[Request],
) -> Answer:
    """Fill the registry for models, without building.

    You can interrupt it at any time: what was measured is kept, and the same command resumes.

    For several models, --objective says what should become small. latency: the sum of their
    latencies. early-stop: the same, but a task is left after the first batch without an
    improvement. goal: only what is above the models' goals. speedup: the geometric mean of their
    latencies. Exits 7 if a goal is missed.

    A lock keeps the records for builds with --frozen. Its lines for other models' tasks stay.

    With --farm, each model for each target is a job. It runs on a board or machine of that target
    that a worker reaches, and all results come into this registry. If a job fails, the others go
    on, and the exit code is that of the first failed job.

    For a machine that cannot be reached from here: tune with --pack, copy the folder there, run
    `python3 measure.py` in it, copy it back, and repeat the command as long as it writes new
    candidates.
    """
    objective = chosen_objective(chosen, goals, models)
    requests = [replace(request, objective=objective) for request in requests]
    if folder is not None:
        return packed(models, folder, requests)
    if requests[0].farm and requests[0].finds_devices:
        return on_farm(models, requests)
    if len(requests) > 1:
        hint = "tune for one after the other, or: --farm tcp://HOST:PORT"
        raise UsageError("several targets need a farm whose workers reach their machines", hint)
    return here(models, requests[0])


def here(models: Sequence[Path], request: Request) -> Answer:
    """Tune on this machine, or on its devices."""
    from ..pipeline import tune
    from ..tune.result import Tune

    with report() as events:
        result = tune(list(models), request, events)
        missed = missed_goals(result.latencies_ms, request.objective, models)
        for sentence in missed:
            events.warn(sentence)
    exit_code = BudgetError.exit_code if missed else 0
    answer = Tune(**structs.asdict(result.figures), rounds=result.rounds)
    return Answer(answer, [tune_summary(result)], exit_code)


def on_farm(models: Sequence[Path], requests: Sequence[Request]) -> Answer:
    """Tune on the machines that a farm's workers reach.

    UsageError where a lock is asked for: the jobs of a farm write none.
    """
    if requests[0].lock is not None:
        hint = "leave it out; afterwards: ansor-deploy build MODEL --target NAME --lock FILE"
        raise UsageError("jobs of a farm write no --lock", hint)
    from ..farm.jobs import tune_on_farm
    from ..farm.table import Jobs

    with report() as events:
        rows = tune_on_farm(models, requests, events)
        of_target = [rows[at : at + len(models)] for at in range(0, len(rows), len(models))]
        times = [[row.latency_ms for row in some] for some in of_target]
        missed = [s for one in times for s in missed_goals(one, requests[0].objective, models)]
        for sentence in missed:
            events.warn(sentence)
    codes = [row.exit_code for row in rows if row.exit_code]
    codes += [BudgetError.exit_code] if missed else []
    return Answer(Jobs(rows), jobs_lines(rows), next(iter(codes), 0))


def packed(models: Sequence[Path], folder: Path, requests: Sequence[Request]) -> Answer:
    """Take in a pack's results, and write the next candidates.

    UsageError where several targets or a device are given.
    """
    from ..pipeline import pack
    from ..tune.result import PackAnswer

    request, *others = requests
    if request.devices or others:
        hint = "a pack is for one machine, which is no device: make one for each target"
        raise UsageError("--pack takes one --target and no --device", hint)
    with report() as events:
        result, written = pack(list(models), folder, request, events)
    answer = PackAnswer(**structs.asdict(result.figures), pack=written)
    return Answer(answer, [tune_summary(result), *pack_lines(written)])


def pack_lines(written: Packed) -> list[str]:
    """The next steps with a pack."""
    if not written.candidates:
        return [f"{written.folder}: nothing is left to measure"]
    what = f"{count(written.candidates, 'candidate')} of {count(written.tasks, 'task')}"
    return [
        f"{written.folder}: {what}; copy it to the target's machine, run there",
        f"  python3 {written.folder.name}/measure.py",
        "and copy it back; the same command takes the results in",
    ]


def chosen_objective(
    name: str | None, goals: Sequence[tuple[str, float]], models: Sequence[Path]
) -> Objective:
    """The objective of these options; a goal names its model by path, file name or stem.

    UsageError where a goal's name fits no model or several, or the options conflict.
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


def missed_goals(
    latencies_ms: Sequence[float], objective: Objective, models: Sequence[Path]
) -> list[str]:
    """A sentence for each model that misses its goal."""
    if not isinstance(objective, Goal):
        return []
    times = zip(models, latencies_ms, objective.goals, strict=True)
    return [
        f"{model} takes about {latency(now / 1e3)} a run, its goal is {latency(goal)}"
        for model, now, goal in times
        if goal and now > goal * 1e3
    ]


def _index(name: str, models: Sequence[Path]) -> int:
    fitting = [k for k, model in enumerate(models) if name in {str(model), model.name, model.stem}]
    if len(fitting) == 1:
        return fitting[0]
    fault = "several of the models" if fitting else "no model given"
    hint = f"the models are: {', '.join(map(str, models))}"
    raise UsageError(f"--goal {name}=... is of {fault}", hint)
