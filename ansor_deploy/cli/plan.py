"""`ansor-deploy plan`: what a build would do."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from msgspec import Struct

from ..errors import MissingRecordError
from ..request import Request
from ..ship.manifest import Memory
from ..system.json_types import Count, Digest, Ms, SecondsIfKnown, Shape, Share
from ..tune.hits import Origins, lacking, lacking_text
from ..views.plan import details as details_of
from ..views.plan import lines
from .declare import existing_file
from .helptext import Command, with_examples
from .options import plan_options, require_hits_option, reuse_option
from .output import Answer, answering, is_verbose, report, verbose_option

if TYPE_CHECKING:
    from ..tune import plan as plans


class Neighbour(Struct, frozen=True):
    """A tuned task of the same family, with other sizes or for another processor.

    distance: in doublings.
    """

    key: Digest
    name: str
    shapes: Sequence[Shape]
    distance: float
    target: Digest


class PlannedTask(Struct, frozen=True):
    """A task of a plan. trials: the most it gets. reason: why its search is not over."""

    name: str
    title: str
    key: Digest
    op: str
    weight: Count
    status: Literal["hit", "near", "miss", "skip"]
    reason: str
    latency_ms: Ms
    impact: Share
    trials: Count
    record: Digest | None
    neighbours: list[Neighbour]

    @classmethod
    def of(cls, row: plans.PlanRow) -> PlannedTask:
        """The answer for a row of a plan."""
        task = row.task
        return cls(
            *(task.name, task.title, task.key.workload, task.workload.op, task.weight),
            *(row.status, row.reason, row.latency * 1e3, row.impact, row.trials),
            row.record.id if row.record else None,
            [
                Neighbour(
                    near.workload.key,
                    near.workload.name,
                    near.workload.shapes,
                    near.distance,
                    near.machine.fingerprint if near.machine else task.key.target,
                )
                for near in row.neighbours
            ],
        )


class Plan(Struct, frozen=True):
    """The answer of `plan --json`. memory: of each model. seconds: an estimate for the trials.

    others: operators of nodes whose kernels are not tasks; no other figure includes them. room_ms:
    the most that trials can save in a run, over tasks that were measured; null if unknown. tune:
    the command that measures the tasks to be tuned.
    """

    models: Sequence[str]
    target: str
    devices: Sequence[str]
    tasks: list[PlannedTask]
    hits: Count
    near: Count
    misses: Count
    skipped: Count
    stale: Count
    trials: Count
    seconds: SecondsIfKnown
    latency_ms: Ms
    room_ms: Ms | None
    memory: list[Memory]
    others: Sequence[str]
    origins: Origins
    tune: str

    @classmethod
    def of(cls, plan: plans.Plan, tune: str = "") -> Plan:
        """The answer for a plan. tune: the command that measures its tasks."""
        same = ("models", "target", "devices", "stale", "trials", "seconds", "others")
        known = {**plan.counts, **{name: getattr(plan, name) for name in same}}
        return cls(
            **known,
            tasks=[PlannedTask.of(row) for row in plan.rows],
            latency_ms=plan.latency * 1e3,
            room_ms=None if plan.room is None else plan.room * 1e3,
            memory=[Memory(**memory.figures()) for memory in plan.memory],
            origins=plan.origins,
            tune=tune,
        )


@with_examples(
    "plan resnet18.onnx",
    "plan resnet18.onnx bert.onnx --target host --effort quick",
    "plan resnet18.onnx --verbose",
    "plan resnet18.onnx --json",
    "plan resnet18.onnx --require-hits",
)
@click.command("plan", cls=Command)
@click.argument("models", type=existing_file, nargs=-1, required=True)
@plan_options
@reuse_option
@require_hits_option
@verbose_option(
    "Say what the models take and give, and which open sizes were assumed; list every task with "
    "its nodes, what it is near to, and why it is tuned again."
)
@answering
def command(models: tuple[Path, ...], request: Request) -> Answer:
    """Show what a build would reuse, tune or skip.

    Several models are planned together: a task that they share is tuned once. A latency with ~ is
    an estimate; the others were measured.

    A task is known if its search is over. It is near if it was never measured, but a task like it
    was: with other sizes, or for other cores and caches. The distance between the two is given in
    doublings. A task is tuned again if its search has not ended, or ended under other conditions,
    such as other rules. A task with too small a share of the time gets the default schedule.
    """
    from ..pipeline import plan

    with report(quiet=not is_verbose()) as events:
        planned = plan(list(models), request, events)
    answer = Plan.of(planned, request.remake)
    if request.require_hits and (rows := lacking(planned, request)):
        said = [f"lacking  {lacking_text(planned, rows)}", f"next     {request.remake}"]
        return Answer(answer, [*shown(planned), *said], MissingRecordError.exit_code)
    return Answer(answer, [*shown(planned), *next_lines(models, request)])


def shown(planned: plans.Plan) -> list[str]:
    """The plan, shortened to fit a screen unless --verbose asks for all of it."""
    if not is_verbose():
        return [line for line, _ in lines(planned)]
    details = details_of(planned)
    return [*(line for line, _ in lines(planned, None)), *(["", *details, ""] if details else [])]


def next_lines(models: Sequence[Path], request: Request) -> list[str]:
    """The command that carries out the plan, with the options that asked for the plan."""
    command = "build" if len(models) == 1 else "tune"
    if command == "tune" and request.reuse != "exact":
        return []  # `tune` has no --reuse
    given: list[str] = click.get_current_context().find_root().obj or ["plan", *map(str, models)]
    words = [word for word in given[1:] if word not in ("-v", "--verbose", "-q", "--quiet")]
    return [f"next     {shlex.join(['ansor-deploy', command, *words])}"]
