"""`ansor-deploy registry revalidate`: try records of other TVM versions with this one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..request import Request
from ..system.json_types import Count, Digest, Ms, MsIfKnown
from ..system.words import count
from ..views import Report
from ..views.text import latency, shortened
from .declare import existing_file, number_option
from .helptext import Command, with_examples
from .options import devices_options, model_options
from .output import Answer, answering, in_columns, report

if TYPE_CHECKING:
    from ..tune.sources import past


class Retried(Struct, frozen=True):
    """A record of another TVM version that was tried. error: "" where its results are right."""

    record: Digest
    tvm: str
    error: str
    message: str
    latency_ms: MsIfKnown


class Retrial(Struct, frozen=True):
    """What became of a task's records of other versions. best: what builds use from now on."""

    name: str
    key: Digest
    tried: list[Retried]
    right: Count
    best: Digest | None
    latency_ms: Ms | None

    @classmethod
    def of(cls, retrial: past.Retrial) -> Retrial:
        """The answer for a task."""
        task, best = retrial.task, retrial.best
        tried = [
            Retried(
                *(record.id, record.provenance.tvm, outcome.error, outcome.message),
                outcome.latency * 1e3,
            )
            for record, outcome in retrial.pairs
        ]
        now = (best.id, best.latency * 1e3) if best else (None, None)
        return cls(task.name, task.key.workload, tried, retrial.right, *now)


class Retrials(Struct, frozen=True):
    """The answer of `registry revalidate --json`. tried, right: numbers of records in all."""

    tried: Count
    right: Count
    tasks: list[Retrial]


@with_examples(
    "registry revalidate resnet18.onnx",
    "registry revalidate resnet18.onnx bert.onnx --top 8",
    "registry revalidate resnet18.onnx --device pi --json",
)
@click.command("revalidate", cls=Command)
@click.argument("models", type=existing_file, nargs=-1, required=True)
@number_option("--top", 3, "Try the best N records of a task, of each version.")
@model_options
@number_option("--seed", 0, "The seed of the inputs that are compared.")
@devices_options
@answering
def revalidate_command(models: tuple[Path, ...], top: int, request: Request) -> Answer:
    """Try the models' records of other versions of TVM.

    A build only uses records of its own version of TVM. This command replays, checks and measures
    the best few records of other versions. Those that are right become records of this version. The
    others are not tried again.
    """
    from ..pipeline import revalidate

    with report() as events:
        retrials = revalidate(list(models), request, top, events)
        warn_of_failures(retrials, events)
    tried = sum(len(retrial.tried) for retrial in retrials)
    right = sum(retrial.right for retrial in retrials)
    answer = Retrials(tried, right, list(map(Retrial.of, retrials)))
    return Answer(answer, retrial_lines(retrials, answer))


def warn_of_failures(retrials: list[past.Retrial], events: Report) -> None:
    """Warn of each record that fails with this TVM, with the reason."""
    for retrial in retrials:
        for record, outcome in retrial.pairs:
            if outcome.error:
                name, tvm = retrial.task.name, record.provenance.tvm
                which = f"{name}: record {record.id[:12]} of TVM {tvm}"
                events.warn(f"{which} is not used: {outcome.error}: {outcome.message}")


def retrial_lines(retrials: list[past.Retrial], answer: Retrials) -> list[str]:
    """A table with a line for each task, at most 80 columns wide, and totals."""
    if not retrials:
        return ["no records of another TVM to try"]
    table = [("task", "op", "tried", "right", "latency")]
    for retrial in retrials:
        names = shortened(retrial.task.name, 30), shortened(retrial.task.workload.op, 12)
        best = latency(retrial.best.latency) if retrial.best else "none"
        table.append((*names, str(len(retrial.tried)), str(retrial.right), best))
    sums = f"{answer.right} of {count(answer.tried, 'record')} can be used again"
    return [*in_columns(table), f"{count(len(retrials), 'task')}: {sums}"]
