"""Facts about kernels for the Cortex-A53 that can be found without a board. Nothing is timed.

NETWORK: as for `hot-loops`, or NETWORK:WAY for a quantised one. For a float network, this prints
how many inner loops of its default schedules access the stack, and how many instructions these
loops have for each vector multiply-add. For every network, it prints the instructions of one
untuned inference on one thread, beside those of ONNX Runtime in the same emulated Debian
(`emulated.py`). The ratio compares the work of a core that executes in order, two instructions at a
time at best. Fewer instructions need not take less time, as memory may be what a core waits for.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import onnx

from ansor_deploy.target import Target
from benchmarks.machine import emulated, hot_loops
from benchmarks.machine.emulated import Retired
from benchmarks.networks import engines, zoo
from benchmarks.networks.quantised import quantised
from benchmarks.networks.side_by_side import compare
from benchmarks.options import python, target
from benchmarks.search import searching

TARGET = "rpi3"
NETWORKS = ("light_resnet50", "mobilenet_v2", "mobilenet_v2:qdq")
PEER = "onnxruntime"


@click.command
@click.argument("networks", nargs=-1)
def command(networks: Sequence[str]) -> None:
    """Scan, build and count each network."""
    if reason := emulated.missing():
        sys.exit(reason)
    for name in networks or NETWORKS:
        if ":" not in name:
            print(_scanned(name, target(TARGET)), flush=True)
        with tempfile.TemporaryDirectory() as folder:
            print(*_counted(name, Path(folder)), sep="\n", flush=True)
    print("no board was timed: these are instructions, and no times")


def _scanned(name: str, of: Target) -> str:
    tasks = searching.network_tasks(name, of)
    loops = [loop for task in tasks for loop in hot_loops.of_kernel(task.mod, of)]
    adds = sum(loop.multiply_adds for loop in loops)
    each = sum(loop.instructions for loop in loops) / max(1, adds)
    spilling = sum(loop.stack > 0 for loop in loops)
    return (
        f"{name}: {spilling} of {len(loops)} inner loops go to the stack;"
        f" {each:.2f} instructions in them for each multiply-add"
    )


def _counted(name: str, folder: Path) -> list[str]:
    model, library = folder / "model.onnx", folder / "model.so"
    onnx.save(_made(name), model)
    words = ["build", str(model), "-o", str(library), "--target", TARGET, "--no-device"]
    words += ["--trials", "0", "--no-verify", "--registry", str(folder / "registry.db")]
    python("-m", "ansor_deploy", *words)
    (ours, found), (theirs, truth) = (
        emulated.retired(engine, model, library, folder) for engine in (engines.OURS, PEER)
    )
    if ":" not in name:  # a quantised network may round to another step
        compare(name, [found], [truth])
    ratio = f"  ours over {PEER}'s: {ours.all / theirs.all:.3f}"
    return [_line(engines.OURS, ours), _line(PEER, theirs), ratio]


def _made(name: str) -> onnx.ModelProto:
    network, _, way = name.partition(":")
    made = zoo.network(network)
    return quantised(made, way) if way else made


def _line(engine: str, one: Retired) -> str:
    adds = one.vectors + one.by_lane
    return (
        f"  {engine:12}{one.all / 1e6:9.1f} M instructions:{adds / 1e6:8.1f} M multiply-adds"
        f" ({one.by_lane / max(1, adds):4.0%} by lane),{one.memory / 1e6:8.1f} M of memory"
    )
