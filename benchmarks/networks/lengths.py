"""One library for any length, beside libraries for each length alone and ONNX Runtime.

    python -m benchmarks lengths bert.onnx --lengths 1,7,31,64,100,128
    python -m benchmarks lengths yolo.onnx --lengths 320,480,640 \
        --input-shape images=1,3,320..640:32,320..640:32

Builds a library for any length up to the largest of these, of a model that leaves one length open,
or for the given ranges, and, without `--no-fixed`, one for each length. Prints the CPU seconds of
each build, and the CPU times of all three in turns on one thread, so that other work on the machine
affects all alike.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from itertools import repeat
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import click
import numpy as np
import onnx

from ansor_deploy.cli.options import input_shape_option
from ansor_deploy.cli.shapes import InputShapes
from ansor_deploy.model.assumed import assumed
from ansor_deploy.model.batches import Span, shapes_of, with_rows
from ansor_deploy.model.misfit import Trials
from ansor_deploy.model.shapes import options
from ansor_deploy.runtime import load
from ansor_deploy.runtime.lengths import Lengths
from ansor_deploy.ship.verify.draws import seeded_inputs
from ansor_deploy.ship.verify.onnx_runtime import open_session
from benchmarks.networks import filled
from benchmarks.networks.decoding import in_turns, timed
from benchmarks.options import Listed, cpu_seconds, json_option, number, python, save

Shapes = Mapping[str, tuple[int | Span, ...]]


@click.command
@click.argument("network", type=Path)
@click.option("--lengths", type=Listed(int), default=[16, 31, 64, 100, 128], help="To be timed.")
@input_shape_option
@click.option("--no-fixed", is_flag=True, help="Build no library for a length alone.")
@number("--runs", 30, "Of each.")
@json_option
def command(
    network: Path,
    lengths: list[int],
    input_shapes: InputShapes,
    no_fixed: bool,
    runs: int,
    file: Path | None,
) -> None:
    """Build, time, and print a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        proto = filled.load(network)
        onnx.save(proto, model := folder / "model.onnx")
        shapes = shapes_of(dict(input_shapes)) or _opened(proto, max(lengths))
        spent = {"range": _built(model, folder / "range.so", shapes)}
        for length in [] if no_fixed else lengths:
            made = folder / f"{length}.so"
            spent[f"{length} alone"] = _built(model, made, with_rows(shapes, length))
        found = [_times(model, folder, length, runs) for length in lengths]
    _show(found, spent)
    save([{"build": spent}, *found], file)


def _opened(proto: onnx.ModelProto, most: int) -> Shapes:
    """The shapes of a model, with its open length as a range up to `most`."""
    shapes = assumed(Trials(proto), {})
    spans = {one for shape in shapes.values() for one in shape if isinstance(one, Span)}
    if not spans:
        raise click.UsageError("the model leaves no length open, or more than one")
    (span,) = spans
    asked = Span(span.least, most)
    return {
        name: tuple(asked if isinstance(one, Span) else one for one in shape)
        for name, shape in shapes.items()
    }


def _built(model: Path, library: Path, shapes: Shapes) -> float:
    """Build a library in a process of its own; return the CPU seconds that it took."""
    before = cpu_seconds()
    words = ["build", model, "-o", library, "--trials", 0, "--registry", library.parent / "r.db"]
    asked = shlex.split(options(shapes))
    python("-m", "ansor_deploy", *map(str, words), *asked)
    return cpu_seconds() - before


def _times(model: Path, folder: Path, length: int, runs: int) -> dict[str, Any]:
    """Median times at a length, in milliseconds."""
    library = load(folder / "range.so", 1)
    ranges = library.batches
    assert isinstance(ranges, Lengths)  # noqa: S101 - it was built for some
    feed = seeded_inputs(
        ranges.interface(*repeat(length, ranges.count)).inputs, seed=0, upper=2, least=1
    )
    session = open_session(model, 1)
    calls: dict[str, Callable[[], object]] = {
        "ours": partial(library, **feed),
        "theirs": partial(session.run, None, feed),
    }
    if (alone := folder / f"{length}.so").exists():
        calls["alone"] = partial(load(alone, 1), **feed)
    times = in_turns({who: partial(timed, call) for who, call in calls.items()}, runs)
    return {"length": length, **{who: 1e3 * median(taken) for who, taken in times.items()}}


def _show(found: list[dict[str, Any]], spent: Mapping[str, float]) -> None:
    print("| length | ours, ms | alone, ms | ONNX Runtime, ms | over alone | over ONNX Runtime |")
    print("|---:|---:|---:|---:|---:|---:|")
    for one in found:
        alone = one.get("alone", np.nan)
        ratios = f"{one['ours'] / alone:.2f} | {one['ours'] / one['theirs']:.2f}"
        times = f"{one['ours']:.3f} | {alone:.3f} | {one['theirs']:.3f}"
        print(f"| {one['length']} | {times} | {ratios} |")
    beside = geometric_mean(one["ours"] / one["theirs"] for one in found)
    alone = [one["ours"] / one["alone"] for one in found if "alone" in one]
    over = f"{geometric_mean(alone):.2f} of libraries alone, " if alone else ""
    print(f"\ngeometric means: {over}{beside:.2f} of ONNX Runtime")
    print("CPU seconds of builds:", ", ".join(f"{who} {s:.1f}" for who, s in spent.items()))
