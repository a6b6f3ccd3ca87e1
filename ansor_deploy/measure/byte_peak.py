"""How fast a processor multiplies and adds up bytes at best: a product that lies in its caches.

It has the default schedule for the target, and so the instructions by which its kernels add up
bytes: VNNI's where these are there, pairs of 16 bits elsewhere. With VNNI this is 97% of what the
instruction itself can do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..codegen.kernels.candidate import COMPUTE
from ..marks.dot import multiplied_rows
from ..runtime import native
from ..target import Target
from .peaks import compiled

# Tiles of many sizes divide the rows; rows and weights take half a second cache at most.
ROWS, COLUMNS, STEPS = 240, 256, 512
CALLS, REPEATS = 4, 40  # some 20 ms in all, of which the fastest calls count

_TEXT = f"""
@T.prim_func(s_tir=True)
def main(a: T.Buffer(({ROWS}, {STEPS}), "{{kind}}"), b: T.Buffer(({STEPS}, {COLUMNS}), "int8"), c: T.Buffer(({ROWS}, {COLUMNS}), "int32")):
    T.func_attr({{{{"tirx.noalias": True, "layout_free_buffers": [1]}}}})
    for i, j, k in T.grid({ROWS}, {COLUMNS}, {STEPS}):
        with T.sblock("b0"):
            u, v, w = T.axis.remap("SSR", [i, j, k])
            T.reads(a[u, w], b[w, v])
            T.writes(c[u, v])
            with T.init():
                c[u, v] = 0
            c[u, v] = c[u, v] + T.Cast("int32", a[u, w]) * T.Cast("int32", b[w, v])
"""  # noqa: E501 - a signature of the script stands on one line


@lru_cache(maxsize=8)
def byte_gops(target: Target) -> float:
    """10^9 operations a second of one core, of which a product and its addition are two.

    target: one whose code this machine runs.
    """
    kind = multiplied_rows(target) or "uint8"
    library, steps = compiled(_TEXT.format(kind=kind), target, "default")
    seconds = _fastest(library, steps, kind)
    return 2 * ROWS * COLUMNS * STEPS / seconds / 1e9


def _fastest(library: Any, steps: Sequence[Mapping[str, Any]], kind: str) -> float:
    """Seconds of a call: the best of many."""
    arrays = [np.ones((ROWS, STEPS), kind), np.ones((STEPS, COLUMNS), "int8")]
    given = [*map(native.tensor, arrays), native.empty((ROWS, COLUMNS), "int32")]
    known: dict[str, list[Any]] = {"task": given, "made": []}
    arguments: list[Any] = []
    for step in steps:
        known["made"] += [native.empty(one["shape"], one["dtype"]) for one in step["makes"]]
        arguments = [known[where][at] for where, at in step["arguments"]]
        library[step["function"]](*arguments)
    return min(native.times(library, COMPUTE, arguments, CALLS, REPEATS))
