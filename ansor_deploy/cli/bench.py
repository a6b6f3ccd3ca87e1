"""`ansor-deploy bench`: how fast a library is, by itself and beside other engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

import click
from msgspec import UNSET, Struct, UnsetType, structs

from ..errors import UsageError
from ..request import ENGINES
from ..ship.manifest import Race
from ..system.json_types import Count, Ms, Shape
from ..system.words import count
from ..views.text import again, latency, race_text, rate_text
from .declare import existing_file
from .helptext import Command, with_examples
from .options import device_option
from .output import Answer, answering, report
from .rates import Rated, rate_lines
from .run_options import seconds_option, threads_option
from .run_times import times_option, write_times
from .values import parse_rate

if TYPE_CHECKING:
    from ..runtime.interface import Interface


class Bench(Struct, frozen=True, kw_only=True):
    """The answer of `bench --json` for one shape. per_second and runs count all streams."""

    median_ms: Ms
    p10_ms: Ms
    p90_ms: Ms
    p95_ms: Ms
    p99_ms: Ms
    per_second: float
    runs: Count
    streams: Count
    beside: list[Race] | UnsetType = UNSET


class BenchVariant(Bench, frozen=True, kw_only=True):
    """As `Bench`, for one of several shapes. inputs: their shapes, by name."""

    inputs: dict[str, Shape]


class BenchVariants(Struct, frozen=True):
    """The answer of `bench --json` for a library with several shapes."""

    variants: list[BenchVariant]


@with_examples(
    "bench resnet18.so",
    "bench resnet18.so --time 30s --json",
    "bench resnet18.so --times runs.csv",
    "bench resnet18.so --beside onnxruntime --threads 1",
    "bench resnet18.so --streams 4",
    "bench resnet18.so --rate 100/s --time 30s",
    "bench resnet18.so --device pi",
)
@click.command("bench", cls=Command)
@click.argument("artifact", type=existing_file)
@click.argument("model", type=existing_file, required=False)
@seconds_option(
    "The time limit after loading, other engines included; with --rate, how long requests come.",
    "5s",
)
@threads_option
@click.option(
    "--beside",
    "engines",
    type=click.Choice(ENGINES),
    multiple=True,
    help="Also time this engine, in turns with the library. Repeatable.",
)
@click.option(
    "--streams",
    type=click.IntRange(min=1),
    callback=lambda ctx, option, number: number or 0,
    metavar="N",
    help="Run N copies at once, each in a process with its share of the threads.  "
    "[default: those of its preset, else 1]",
)
@click.option(
    "--rate",
    type=parse_rate,
    metavar="100/s",
    help="Let requests arrive at random at this rate, and show how long they wait.",
)
@times_option
@device_option
@answering
def command(
    artifact: Path,
    model: Path | None,
    run_seconds: float,
    threads: int,
    engines: tuple[str, ...],
    streams: int,
    rate: float | None,
    times: Path | None,
    devices: tuple[str, ...] | None,
) -> Answer:
    """Time a library on this machine or on a device.

    Prints percentiles of the times of runs on seeded inputs, and the number of runs in a second,
    for each shape of the library. With --beside, another engine runs MODEL, from which the library
    was built, in turns with it. MODEL may be left out if it is in this folder or beside the
    library.

    At least one run is made in each shape, and one turn beside each engine, even if that takes
    longer than --time. With several streams, the runs of all copies are counted together.
    """
    from ..ship.race.rates import bench_rate
    from ..ship.race.timing import bench, bench_streams, split_of

    if times and rate:
        raise UsageError("--rate keeps no time of each run", "leave out --times")
    if engines and (streams > 1 or rate):
        option = "--rate" if rate else "--streams"
        raise UsageError("--beside times one copy of the library", f"leave out {option}")
    width, streams = split_of(artifact, threads, 1 if engines or devices else streams)
    here = bool(engines or threads or model or streams > 1)
    if devices and here:
        what = "--beside, --streams and --threads work on this machine only"
        raise UsageError(what, "leave out --device")
    where = () if here else devices
    with report() as events:
        if rate:
            served = bench_rate(artifact, rate, run_seconds, width, streams, where, events)
            rated = Rated.of(served, rate, width, streams)
            return Answer(rated, rate_lines(rated))
        if streams > 1:
            timed = bench_streams(artifact, run_seconds, width, streams)
        else:
            timed = bench(artifact, run_seconds, threads, where, events, engines, model)
    if times:
        write_times(times, timed)
    return _answer(
        {one.interface: statistics(one.seconds, streams, one.beside) for one in timed}, run_seconds
    )


def _answer(each: Mapping[Interface, Bench], seconds: float) -> Answer:
    """The figures of each of a library's shapes. seconds: the time limit of the whole bench."""
    if len(each) == 1:
        (figures,) = each.values()
        return Answer(figures, lines(figures, seconds))
    variants = [
        BenchVariant(**structs.asdict(figures), inputs=interface.input_shapes)
        for interface, figures in each.items()
    ]
    return Answer(BenchVariants(variants), list(named_lines(each, seconds)))


def lines(figures: Bench, seconds: float) -> list[str]:
    """The answer for one of a library's shapes as text. seconds: the time limit of the bench."""
    names = ("median", "p10", "p90", "p95", "p99")
    times = ", ".join(f"{name} {latency(getattr(figures, f'{name}_ms') / 1e3)}" for name in names)
    of = f" of {figures.streams} streams" if figures.streams > 1 else ""
    first = f"{times}; {rate_text(figures.per_second)} a second ({count(figures.runs, 'run')}{of})"
    return [first, *(race_text(race, again(seconds)) for race in figures.beside or ())]


def named_lines(each: Mapping[Interface, Bench], seconds: float) -> Iterator[str]:
    """`lines` of each of a library's shapes, prefixed by the inputs that it takes."""
    for interface, figures in each.items():
        yield from (f"{interface.takes}: {line}" for line in lines(figures, seconds))


def statistics(times: list[float], streams: int, beside: list[Race]) -> Bench:
    """The figures of timed runs, and of races beside other engines. times: seconds of each run."""
    ms = [seconds * 1e3 for seconds in times]
    points = quantiles(ms, n=100, method="inclusive") if len(ms) > 1 else ms * 99
    percentiles = {f"p{n}_ms": points[n - 1] for n in (10, 90, 95, 99)}
    rate = streams * len(times) / sum(times)
    figures = {"median_ms": median(ms), **percentiles, "per_second": rate}
    return Bench(**figures, runs=len(ms), streams=streams, beside=beside or UNSET)
