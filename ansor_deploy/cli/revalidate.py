"""`ansor-deploy registry revalidate`: records of other versions of TVM, tried with this one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..request import Request
from ..system.words import count
from ..views import Report
from ..views.text import latency, shortened
from .declare import existing_file, number_option
from .helptext import Command, with_examples
from .options import devices_options, model_options
from .output import Answer, answering, in_columns, quiet_option, report

if TYPE_CHECKING:
    from ..tune.sources.past import Retrial


@with_examples(
    "registry revalidate resnet18.onnx",
    "registry revalidate resnet18.onnx bert.onnx --top 8",
    "registry revalidate resnet18.onnx --device pi --json",
)
@click.command("revalidate", cls=Command)
@click.argument("models", type=existing_file, nargs=-1, required=True)
@number_option("--top", 3, "Try so many of a task's records of each version.")
@model_options
@number_option("--seed", 0, "Seed of the inputs that are compared.")
@devices_options
@quiet_option
@answering
def revalidate_command(models: tuple[Path, ...], top: int, request: Request) -> Answer:
    """Try the models' records of other versions of TVM.

    A build uses records of its own version alone. The best few of others are replayed, checked and
    measured here; those that are right become records of this version, and the rest is not tried
    again.
    """
    from ..pipeline import revalidate

    with report() as events:
        made = revalidate(list(models), request, top, events)
        warn_of_failures(made, events)
    figures: dict[str, Any] = {
        "tried": sum(len(one.tried) for one in made),
        "right": sum(one.right for one in made),
        "tasks": [one.to_json() for one in made],
    }
    return Answer(figures, retrial_lines(made, figures))


def warn_of_failures(made: list[Retrial], events: Report) -> None:
    """Name each record that is of no use any more, with the reason."""
    for one in made:
        for record, outcome in zip(one.tried, one.outcomes, strict=True):
            if outcome.error:
                which = f"{one.task.name}: record {record.id[:12]} of TVM {record.provenance.tvm}"
                events.warn(f"{which} is not used: {outcome.error}: {outcome.message}")


def retrial_lines(made: list[Retrial], figures: dict[str, Any]) -> list[str]:
    """A table with a line for each task, of at most 80 columns, and the sums of `figures`."""
    if not made:
        return ["no records of another TVM to try"]
    table = [("task", "op", "tried", "right", "latency")]
    for one in made:
        names = shortened(one.task.name, 30), shortened(one.task.workload.op, 12)
        best = latency(one.best.latency) if one.best else "none"
        table.append((*names, str(len(one.tried)), str(one.right), best))
    sums = f"{figures['right']} of {count(figures['tried'], 'record')} serve again"
    return [*in_columns(table), f"{count(len(made), 'task')}: {sums}"]
