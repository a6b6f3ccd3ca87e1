"""`ansor-deploy bench`: how fast a library is."""

from __future__ import annotations

from pathlib import Path
from statistics import median, quantiles

import click

from .helptext import examples
from .options import artifact_file, device_option, json_option
from .output import print_json, stdout_kept_clean
from .values import Duration


@click.command(
    "bench",
    epilog=examples(
        "bench resnet18.so", "bench resnet18.so --time 30s --json", "bench resnet18.so --device pi"
    ),
)
@click.argument("artifact", type=artifact_file)
@click.option(
    "--time",
    "seconds",
    type=Duration(),
    default=2.0,
    metavar="10s",
    help="How long to run it.  [default: 2s]",
)
@device_option
@json_option
def command(artifact: Path, seconds: float, device: str, as_json: bool) -> None:
    """Time a library on this machine or on a device.

    Prints the median, the 10th and the 90th percentile of runs on seeded inputs.
    """
    from ..pipeline import bench
    from ..report.choose import report_on_stderr
    from ..report.text import latency

    with stdout_kept_clean(), report_on_stderr(plain=as_json) as report:
        times = bench(artifact, seconds, device, report)
    figures = statistics(times)
    if as_json:
        print_json(figures)
        return
    middle, low, high = (latency(figures[f"{key}_ms"] / 1e3) for key in ("median", "p10", "p90"))
    click.echo(f"median {middle}, p10 {low}, p90 {high} ({figures['runs']} runs)")


def statistics(times: list[float]) -> dict[str, float | int]:
    """The figures of runs in seconds, as milliseconds."""
    tenths = quantiles(times, n=10, method="inclusive") if len(times) > 1 else times * 9
    return {
        "median_ms": median(times) * 1e3,
        "p10_ms": tenths[0] * 1e3,
        "p90_ms": tenths[8] * 1e3,
        "runs": len(times),
    }
