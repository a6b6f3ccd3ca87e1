"""Steps of a decoder whose library keeps its caches, beside ONNX Runtime with growing ones.

    python examples/llm/llama.py mid.onnx --layers 6 --width 512 --heads 8 --groups 4 --words 4000
    ansor-deploy build mid.onnx --trials 0 --context 1152
    python -m benchmarks decode mid.onnx mid.so

The CPU time of one step on one thread, in turns, so that other work on the machine affects both
alike. Libraries without a context take part at the length that their caches have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from ansor_deploy.runtime import Model, load
from ansor_deploy.ship.verify.draws import seeded_inputs
from benchmarks.options import Listed, json_option, number, save

Step = Callable[[], float]  # makes a step and returns its CPU time


@click.command
@click.argument("network", type=Path)
@click.argument("libraries", nargs=-1, required=True, type=Path)
@click.option("--lengths", type=Listed(int), default=[128, 512, 1024], help="Rows before a step.")
@number("--runs", 30, "Of each.")
@json_option
def command(
    network: Path, libraries: tuple[Path, ...], lengths: list[int], runs: int, file: Path | None
) -> None:
    """Time steps, and print a table."""
    loaded = [load(one, 1) for one in libraries]
    kept = next(one for one in loaded if one.context)
    found = [row for length in lengths for row in _rows(network, kept, loaded, length, runs)]
    print("| rows before | cache, MB | who | ms | ours over theirs |")
    print("|---:|---:|---|---:|---:|")
    for one in found:
        words = one["length"], f"{one['cache']:.1f}", one["who"], f"{one['ms']:.2f}"
        print(f"| {' | '.join(map(str, words))} | {one['ratio']:.2f} |")
    save(found, file)


def _rows(
    network: Path, kept: Model, loaded: list[Model], length: int, runs: int
) -> list[dict[str, Any]]:
    """Times of all at a length. kept: the library with a context."""
    context = kept.context
    assert context is not None  # noqa: S101 - it was chosen for that
    wanted = context.grown(kept.called, length)
    feed = seeded_inputs(wanted.inputs, seed=0, upper=2, least=1)
    caches = {one.input: feed[one.input] for one in context.caches}
    steps = {"ours": _ours(kept, feed, caches), "ONNX Runtime": _theirs(network, feed)}
    for one in loaded:
        if one.context is None and one.inputs == wanted.inputs:
            steps[one.path.name] = _called(one, feed)
    times = in_turns(steps, runs)
    size = sum(one.nbytes for one in caches.values()) / 1e6
    return [
        {
            "length": length,
            "cache": size,
            "who": who,
            "ms": 1e3 * median(taken),
            "ratio": median(a / b for a, b in zip(times["ours"], taken, strict=True)),
        }
        for who, taken in times.items()
    ]


def in_turns(steps: Mapping[str, Step], runs: int) -> dict[str, tuple[float, ...]]:
    """CPU times of so many steps of each in turns, after one of each that is not counted."""
    rounds = [[step() for step in steps.values()] for _ in range(runs + 1)]
    return dict(zip(steps, zip(*rounds[1:], strict=True), strict=True))


def timed(call: Callable[[], object]) -> float:
    """The CPU time of a call, on this thread."""
    began = time.thread_time()
    call()
    return time.thread_time() - began


def _ours(model: Model, feed: dict[str, np.ndarray], caches: dict[str, np.ndarray]) -> Step:
    model.resume(**caches)
    given = {name: one for name, one in feed.items() if name not in caches}
    length = model.length

    def step() -> float:
        taken = timed(lambda: model.decode(**given))
        model.truncate(length)
        return taken

    return step


def _called(model: Model, feed: dict[str, np.ndarray]) -> Step:
    return lambda: timed(lambda: model(**feed))


def _theirs(network: Path, feed: dict[str, np.ndarray]) -> Step:
    from ansor_deploy.ship.verify.onnx_runtime import open_session

    session = open_session(network, 1)
    return lambda: timed(lambda: session.run(None, feed))
