"""The time of a token in decoders, by rows and threads, beside ONNX Runtime and the memory's rate.

    python -m benchmarks decoder q4.onnx --weights q4
    python -m benchmarks tokens q4.onnx --rows 1,2,4,8,512 --threads 1,2

Builds an untuned library for each number of rows, with room for a context, unless it lies beside
the model. Steps after some rows are timed in turns: on one thread by CPU time, so that other work
on the machine affects both alike; on several by wall-clock time. The share is the least time to
read the multiplied weights once, at this machine's memory rate for so many threads, over our time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import onnx

from ansor_deploy.measure.peaks import bandwidths
from ansor_deploy.runtime import load
from ansor_deploy.ship.race.turn import PAUSE_SECONDS, UNCOUNTED
from ansor_deploy.ship.verify.draws import seeded_inputs
from ansor_deploy.ship.verify.onnx_runtime import open_session
from benchmarks.networks.decoding import in_turns
from benchmarks.options import Listed, json_option, number, save, target, untuned

_PRODUCTS = ("MatMulNBits", "MatMul", "DequantizeLinear", "Cast")


@click.command
@click.argument("networks", nargs=-1, required=True, type=Path)
@click.option("--rows", type=Listed(int), default=[1, 2, 4, 8, 512], help="Of a step.")
@click.option("--threads", type=Listed(int), default=[1, 2])
@number("--room", 1152, "Rows of the context.")
@number("--past", 128, "Rows before a step.")
@number("--runs", 10, "Of each.")
@json_option
def command(
    networks: tuple[Path, ...],
    rows: list[int],
    threads: list[int],
    room: int,
    past: int,
    runs: int,
    file: Path | None,
) -> None:
    """Build, time, and print a table."""
    found = []
    print("| file | rows | threads | ours, ms | share of memory's rate | over ONNX Runtime's |")
    print("|---|---:|---:|---:|---:|---:|")
    for network in networks:
        size = _multiplied(network)
        for count in rows:
            library = _library(network, count, room)
            for several in threads:
                one = _times(network, library, several, past, runs)
                rate = bandwidths(target("host"), several)[-1][1]
                one |= {"network": network.stem, "rows": count, "threads": several}
                one["share"] = size / rate / one["ours"]
                print(_line(one), flush=True)
                found.append(one)
    save(found, file)


def _line(one: dict[str, Any]) -> str:
    who = f"| {one['network']} | {one['rows']} | {one['threads']} "
    return f"{who}| {1e3 * one['ours']:.1f} | {one['share']:.2f} | {one['ratio']:.2f} |"


def _multiplied(network: Path) -> int:
    """The bytes of the weights that are multiplied."""
    graph = onnx.load(network, load_external_data=False).graph
    read = {n for node in graph.node if node.op_type in _PRODUCTS for n in node.input}
    kinds = {one.name: one for one in graph.initializer if one.name in read}
    return sum(
        int(np.prod(one.dims)) * onnx.helper.tensor_dtype_to_np_dtype(one.data_type).itemsize
        for one in kinds.values()
    )


def _library(network: Path, rows: int, room: int) -> Path:
    kept = network.with_name(f"{network.stem}-{rows}.so")
    if not kept.exists():
        shape = ["--input-shape", f"input_ids=1,{rows}"]
        made = untuned(network, "--context", str(room), "--no-verify", *shape)
        made.rename(kept)
        made.with_suffix(".json").rename(kept.with_suffix(".json"))
    return kept


def _times(network: Path, library: Path, threads: int, past: int, runs: int) -> dict[str, Any]:
    model, session = load(library, threads), open_session(network, threads)
    context = model.context
    assert context is not None  # noqa: S101 - it was built with one
    feed = seeded_inputs(context.grown(model.called, past).inputs, seed=0, upper=2, least=1)
    caches = {one.input: feed[one.input] for one in context.caches}
    given = {name: one for name, one in feed.items() if name not in caches}
    model.resume(**caches)
    length = model.length
    clock = time.thread_time if threads == 1 else time.perf_counter

    def timed(call: Callable[[], object]) -> float:
        began = clock()
        call()
        return clock() - began

    def ours() -> float:
        taken = timed(lambda: model.decode(**given))
        model.truncate(length)
        return taken

    def calm(step: Callable[[], float]) -> Callable[[], float]:
        """A step behind a pause and others, since idle threads of an engine spin for a while."""
        return step if threads == 1 else lambda: _behind_a_pause(step)

    steps = {"ours": ours, "theirs": lambda: timed(lambda: session.run(None, feed))}
    times = in_turns({name: calm(step) for name, step in steps.items()}, runs)
    ratios = [a / b for a, b in zip(times["ours"], times["theirs"], strict=True)]
    return {"ours": min(times["ours"]), "theirs": min(times["theirs"]), "ratio": median(ratios)}


def _behind_a_pause(step: Callable[[], float]) -> float:
    """The median of a few steps, after some that wake the engine's threads."""
    time.sleep(PAUSE_SECONDS)
    return median([step() for _ in range(2 * UNCOUNTED)][UNCOUNTED:])
