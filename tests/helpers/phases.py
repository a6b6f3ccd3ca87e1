"""Convolutions in TE in which only some taps read an input: inputs, then the output."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import te, topi


def _inputs(*shapes: tuple[int, ...]) -> list[Any]:
    return [te.placeholder(shape, name="x") for shape in shapes]


def spread() -> list[Any]:
    """A convolution over an axis in which every second element is an inserted zero."""
    x, w = _inputs((6, 4), (4, 4, 8))
    r, k = te.reduce_axis((0, 4)), te.reduce_axis((0, 4))

    def at(i: Any, c: Any) -> Any:
        even = (i + r) % 2 == 0
        return te.sum(
            tvm.tirx.if_then_else(even, x[(i + r) // 2, k], 0.0) * w[r, k, c], axis=[r, k]
        )

    return [x, w, topi.nn.relu(te.compute((8, 8), at, name="conv"))]


def interleaved() -> list[Any]:
    """Two phases of a convolution, interleaved."""
    x, w = _inputs((5, 4), (2, 2, 4, 8))
    r, k = te.reduce_axis((0, 2)), te.reduce_axis((0, 4))
    phases = te.compute(
        (2, 4, 8), lambda f, p, c: te.sum(x[p + r, k] * w[f, r, k, c], axis=[r, k]), name="phases"
    )
    joined = te.compute((8, 8), lambda t, c: phases[t % 2, t // 2, c], name="joined")
    return [x, w, topi.nn.relu(joined)]
