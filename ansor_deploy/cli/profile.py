"""`ansor-deploy profile`: where a library's time goes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..registry.title import shape_text
from ..report.text import KEY, TITLE, count, cut, latency, share
from .helptext import Command, with_examples
from .options import existing_file, number_option
from .output import Answer, answering
from .values import parse_duration

if TYPE_CHECKING:
    from ..runtime.profile import KernelTime, Profile

HEADER = ("key", "kernel", "time", "share", "GFLOP/s", "record")
ROW = f"{{:{KEY}}} {{:{TITLE}}} {{:>8}} {{:>6}} {{:>7}} {{}}"


@with_examples("profile resnet18.so", "profile resnet18.so --threads 1 --json")
@click.command("profile", cls=Command)
@click.argument("artifact", type=existing_file)
@number_option("--threads", 0, "Threads of a run; 0 for as many as the target has cores.")
@click.option(
    "--time",
    "seconds",
    type=parse_duration,
    default="2s",
    metavar="10s",
    help="How long to run it.  [default: 2s]",
)
@answering
def command(artifact: Path, threads: int, seconds: float) -> Answer:
    """Time each kernel of a library in its place in a run.

    Prints the kernels in the order of the network, each with its share of a run, its speed and the
    record of its task, or that it has the default schedule; and what a run takes beside them.
    """
    from ..runtime.model import takes_text
    from ..timing import profile

    found = profile(artifact, threads, seconds)
    lines = [text for one, times in found for text in (takes_text(one), *table(times))]
    if len(found) == 1:
        return Answer(found[0][1].to_json(), lines[1:])
    shapes = [{i.name: list(i.shape) for i in one.inputs} for one, _ in found]
    each = zip(shapes, found, strict=True)
    return Answer({"variants": [{"inputs": i, **one.to_json()} for i, (_, one) in each]}, lines)


def table(profile: Profile) -> list[str]:
    """A profile as lines of text."""
    rest = max(0.0, profile.rest)  # less is noise
    cells = [HEADER, *(_cells(one, profile.seconds) for one in profile.kernels)]
    cells.append(("", "the rest", latency(rest), share(rest / profile.seconds), "", ""))
    lines = [ROW.format(*row).rstrip() for row in cells]
    return [*lines, f"{count(len(profile.kernels), 'kernel')}, {latency(profile.seconds)} a run"]


def _cells(one: KernelTime, whole: float) -> tuple[str, ...]:
    task: Mapping[str, Any] = one.task or {}
    flops, record = task.get("flops"), task.get("record", "")
    speed = f"{flops / one.seconds / 1e9:.1f}" if flops and one.seconds else ""
    result = shape_text(one.shapes[-1]) if one.shapes else ""
    title = str(task.get("title") or f"{one.name} {result}")
    figures = latency(one.seconds), share(one.seconds / whole), speed
    return task.get("key", "")[:KEY], cut(title, TITLE), *figures, record[:12]
