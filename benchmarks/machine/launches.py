"""The cost of starting a kernel, from chains of matmuls in which each is a kernel of its own.

A chain of 100 and a chain of 1 are called in turns with ONNX Runtime's, for each number of threads;
the time of a kernel is the difference over 99. Rows of 16 elements take almost no computing, and
one thread: their time is the cost of a launch. Matrices of 64 x 64 are shared among threads: the
cost of the thread pool is their time beyond a fair share of the time on one thread.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import onnx

from benchmarks.networks.engines import Run
from benchmarks.networks.onnx_net import Net
from benchmarks.networks.side_by_side import load, race
from benchmarks.options import Listed, cores, json_option, save, untuned

SHORT = 1  # kernels of the short chain
LONG = 100  # kernels of the long chain
SHAPES = ((1, 16), (64, 64))


@click.command
@click.option("--threads", type=Listed(int), default=sorted({1, cores()}))
@click.option("--out", type=Path, default=Path("out/launches"), help="Work folder.")
@json_option
def command(threads: list[int], out: Path, file: Path | None) -> None:
    """Build and time the chains; print the nanoseconds of a kernel."""
    out.mkdir(parents=True, exist_ok=True)
    found = []
    print(f"{'rows x columns':16}{'threads':>8}{'ns':>9}{'ONNX Runtime, ns':>18}")
    for rows, columns in SHAPES:
        chains = {count: _built(rows, columns, count, out) for count in (SHORT, LONG)}
        for count in threads:
            row = _times(chains, count)
            print(
                f"{f'{rows} x {columns}':16}{count:8}{row['ours']:9.0f}{row['onnxruntime']:18.0f}"
            )
            found.append({"rows": rows, "columns": columns, "threads": count, **row})
    save(found, file)


def _built(rows: int, columns: int, count: int, out: Path) -> Path:
    """Write the model of a chain, and build its untuned library beside it."""
    net = Net("chain", 0)
    x = net.input("x", (rows, columns))
    for _ in range(count):
        x = net.node("MatMul", x, net.random((columns, columns), columns**-0.5))
    path = out / f"{rows}x{columns}x{count}.onnx"
    onnx.save(net.model(x, "y", (rows, columns)), path)
    untuned(path)
    return path


def _times(chains: dict[int, Path], threads: int) -> dict[str, Any]:
    """Nanoseconds of one kernel, by engine."""
    runs: dict[str, Run] = {}
    for count, path in chains.items():
        ours, theirs = load(path, [path.with_suffix(".so")], ["onnxruntime"], threads).values()
        runs |= {f"ours {count}": ours, f"onnxruntime {count}": theirs}
    taken = race(runs, threads).milliseconds

    def each(name: str) -> float:
        return (taken(f"{name} {LONG}") - taken(f"{name} {SHORT}")) / (LONG - SHORT) * 1e6

    return {name: each(name) for name in ("ours", "onnxruntime")}
