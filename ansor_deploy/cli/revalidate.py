"""`ansor-deploy registry revalidate`: records of other versions of TVM, tried with this one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .helptext import examples
from .options import (
    device_option,
    device_target,
    input_shape_option,
    json_option,
    make_request,
    model_file,
    registry_option,
    seed_option,
    target_option,
)
from .output import in_columns, print_json, stdout_kept_clean

if TYPE_CHECKING:
    from ..report import Report
    from ..tune.revalidate import Retrial


@click.command(
    "revalidate",
    epilog=examples(
        "registry revalidate resnet18.onnx",
        "registry revalidate resnet18.onnx bert.onnx --top 8",
        "registry revalidate resnet18.onnx --device pi --json",
    ),
)
@click.argument("models", type=model_file, nargs=-1, required=True)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=3,
    metavar="N",
    help="Try so many of a task's records of each version.  [default: 3]",
)
@target_option
@registry_option
@input_shape_option
@seed_option
@device_option
@json_option
def revalidate_command(
    models: tuple[Path, ...],
    top: int,
    target: str | None,
    registry: Path | None,
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...],
    seed: int,
    device: str,
    as_json: bool,
) -> None:
    """Try the models' records of other versions of TVM.

    A build uses records of its own version alone. The best few of others are replayed, checked and
    measured here; those that are right become records of this version, and the rest is not tried
    again.
    """
    from ..pipeline import revalidate
    from ..report.choose import report_on_stderr

    request = make_request(target, registry, dict(input_shapes), "ansor", seed)
    if device:
        where = request.target if target else device_target(device)
        request = replace(request, target=where, devices=(device,))
    with stdout_kept_clean(), report_on_stderr(plain=as_json) as report:
        made = revalidate(list(models), request, top, report)
        tell_failures(made, report)
    if as_json:
        tried = sum(len(one.tried) for one in made)
        right = sum(one.right for one in made)
        tasks = [one.to_json() for one in made]
        print_json({"tried": tried, "right": right, "tasks": tasks})
    else:
        click.echo("\n".join(retrial_lines(made)))


def tell_failures(made: list[Retrial], report: Report) -> None:
    """Name each record that is of no use any more, with the reason."""
    for one in made:
        for record, outcome in zip(one.tried, one.outcomes, strict=True):
            if outcome.error:
                which = f"{one.task.name}: record {record.id[:12]} of TVM {record.provenance.tvm}"
                report.warn(f"{which} is not used: {outcome.error}: {outcome.message}")


def retrial_lines(made: list[Retrial]) -> list[str]:
    """A table with a line for each task, of at most 80 columns, and the sum."""
    from ..report.text import count, latency, shortened

    if not made:
        return ["no records of another TVM to try"]
    table = [("task", "op", "tried", "right", "latency")]
    for one in made:
        names = shortened(one.task.name, 30), shortened(one.task.workload.op, 12)
        best = latency(one.best.latency) if one.best else "none"
        table.append((*names, str(len(one.tried)), str(one.right), best))
    records = count(sum(len(one.tried) for one in made), "record")
    right = sum(one.right for one in made)
    return [*in_columns(table), f"{count(len(made), 'task')}: {right} of {records} serve again"]
