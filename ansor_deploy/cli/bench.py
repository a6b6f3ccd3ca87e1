"""`ansor-deploy bench`: how fast a library is."""

from pathlib import Path
from statistics import median, quantiles

import click

from ..report.text import latency
from .helptext import Command, with_examples
from .options import device_option, existing_file
from .output import Answer, answering, report
from .values import parse_duration


@with_examples(
    "bench resnet18.so", "bench resnet18.so --time 30s --json", "bench resnet18.so --device pi"
)
@click.command("bench", cls=Command)
@click.argument("artifact", type=existing_file)
@click.option(
    "--time",
    "seconds",
    type=parse_duration,
    default="2s",
    metavar="10s",
    help="How long to run it.  [default: 2s]",
)
@device_option
@answering
def command(artifact: Path, seconds: float, devices: tuple[str, ...] | None) -> Answer:
    """Time a library on this machine or on a device.

    Prints the median, the 10th and the 90th percentile of runs on seeded inputs, for each of the
    shapes that it was built for.
    """
    from ..pipeline import bench
    from ..runtime.model import takes_text

    with report() as events:
        timed = bench(artifact, seconds, devices, events)
    figures = [statistics(times) for _, times in timed]
    lines = list(map(line, figures))
    if len(timed) == 1:
        return Answer(figures[0], lines)
    shapes = [{i.name: list(i.shape) for i in interface.inputs} for interface, _ in timed]
    named = [f"{takes_text(one)}: {text}" for (one, _), text in zip(timed, lines, strict=True)]
    each = zip(shapes, figures, strict=True)
    return Answer({"variants": [{"inputs": takes, **one} for takes, one in each]}, named)


def line(figures: dict[str, float | int]) -> str:
    """Figures of `statistics` as text."""
    middle, low, high = (latency(figures[f"{key}_ms"] / 1e3) for key in ("median", "p10", "p90"))
    return f"median {middle}, p10 {low}, p90 {high} ({figures['runs']} runs)"


def statistics(times: list[float]) -> dict[str, float | int]:
    """The figures of runs in seconds, as milliseconds."""
    ms = [seconds * 1e3 for seconds in times]
    tenths = quantiles(ms, n=10, method="inclusive") if len(ms) > 1 else ms * 9
    return {"median_ms": median(ms), "p10_ms": tenths[0], "p90_ms": tenths[8], "runs": len(ms)}
