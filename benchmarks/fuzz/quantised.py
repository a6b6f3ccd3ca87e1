"""Libraries of random quantised graphs: each integer tensor is compared with ONNX Runtime's.

Tensors that depend on no float island are also compared, bit for bit, with integer arithmetic in
NumPy: a build that verifies would refuse a graph that fails this.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ansor_deploy.errors import AnsorError
from ansor_deploy.model.prepare import Prepared, prepare
from ansor_deploy.ship.islands import islands
from ansor_deploy.ship.verify.exact import exact_outputs, judge_exactly
from ansor_deploy.target import Target
from benchmarks.fuzz.conformance_cases import build, shipped_target
from benchmarks.fuzz.fences import traced
from benchmarks.fuzz.quantised_graphs import Graph, RefusedError, Segment, Steps, answers
from benchmarks.fuzz.quantised_operators import operator
from benchmarks.fuzz.quantised_steps import STEPS

_CHANNELS = (1, 2, 3, 4, 8, 16, 17)
_SIDES = (1, 2, 3, 5, 8)
_TRIES = 20  # attempts at a segment that ONNX Runtime accepts


def attempt(payload: dict[str, Any]) -> dict[str, Any]:
    """Build and run the graph of {"seed"} for a {"target"} in a {"folder"}.

    Returns {"end": "done", "wrong" or "refused"; "said": what is wrong, or why; "seconds"}.
    """
    began = time.perf_counter()
    end, said = "done", ""
    try:
        if said := fault(graph(payload["seed"]), payload["target"], Path(payload["folder"])):
            end = "wrong"
    except AnsorError as error:
        end, said = "refused", str(error)
    return {"end": end, "said": said, "seconds": time.perf_counter() - began}


def graph(seed: int) -> Graph:
    """The graph of a seed."""
    made = Graph(seed)
    chance = made.chance
    shape = _shape(chance)
    for _ in range(chance.choice((1, 1, 2))):
        made.input(shape if chance.random() < 0.7 else _shape(chance))
    newest = made.inputs[0]
    for _ in range(chance.choice((1, 1, 2, 3))):
        newest = _grown(made, newest)
    return made


def _shape(chance: random.Random) -> tuple[int, ...]:
    channels, side, other = chance.choice(_CHANNELS), chance.choice(_SIDES), chance.choice(_SIDES)
    images = (chance.choice((1, 1, 2)), channels, side, other)
    return chance.choice((images, images, images[1:], (side, channels), images[:1] + images[1:3]))


def _grown(made: Graph, newest: Steps) -> Steps:
    """Add a segment that reads the newest tensor; returns its output."""
    for _ in range(_TRIES):
        made.segments.append(Segment())
        try:
            make = operator if made.chance.random() < 0.3 else _between
            make(made, newest)
            return made.segments[-1].made[0]
        except RefusedError:
            made.segments.pop()
    return newest


def _between(made: Graph, newest: Steps) -> None:
    """Add float operators between conversions."""
    x = made.numbers(newest)
    for _ in range(made.chance.choice((1, 1, 2, 3))):
        if not made.shape(x):
            break  # a scalar has no axes to work on
        step = made.chance.choice(STEPS)
        try:
            x = step(made, x)
        except RefusedError:
            continue
    same = made.chance.random() < 0.15
    made.integers(x, newest if same else None)


def fault(made: Graph, target: str, folder: Path) -> str:
    """What the library of a graph does wrong, or "".

    ONNX Runtime runs each segment on what the library's earlier segments have computed, so that
    errors do not add up over segments.
    """
    nodes = [node for part in made.segments for node in part.nodes]
    names = [one.name for part in made.segments for one in part.made]
    proto = made.model(nodes, names, [one.name for one in made.inputs])
    (folder / "net.onnx").write_bytes(proto.SerializeToString())
    library, machine = folder / "net.so", replace(shipped_target(target), cores=1)
    build(proto, machine, library)
    feeds = {one.name: made.values[one.name] for one in made.inputs}
    run = traced(library, list(feeds.values()))
    feeds |= dict(zip(names, run.outputs, strict=True))
    said = [_of_segment(made, part, feeds) for part in made.segments]
    said.append(_of_integers(prepare(folder / "net.onnx", machine), machine, feeds))
    return "; ".join(filter(None, said))


def _of_integers(model: Prepared, target: Target, feeds: dict[str, np.ndarray]) -> str:
    """Which tensors differ from integer arithmetic, or ""."""
    (proto,) = model.protos
    given = {name: feeds[name] for name in (one.name for one in proto.graph.input)}
    exact = exact_outputs(proto, islands(model, target), given)
    off = [name for name, one in judge_exactly(feeds, exact, {}) if not one.ok]
    return f"not what the integers come to: {', '.join(off)}" if off else ""


def _of_segment(made: Graph, part: Segment, feeds: dict[str, np.ndarray]) -> str:
    """What one segment does wrong, or ""."""
    given = [one.name for one in part.read]
    proto = made.model(part.nodes, [one.name for one in part.made], given)
    wanted = answers(proto, {name: feeds[name] for name in given})
    operators = ", ".join(node.op_type for node in part.nodes)
    for one, want in zip(part.made, wanted, strict=True):
        have = feeds[one.name]
        if (have.shape, have.dtype) != (want.shape, want.dtype):
            return f"{have.dtype}{have.shape} for {want.dtype}{want.shape}: {operators}"
        off = np.abs(have.astype(np.int64) - want.astype(np.int64))
        if (off > part.off).any():
            return f"{(off > part.off).sum()} of {off.size} off by up to {off.max()}: {operators}"
    return ""
