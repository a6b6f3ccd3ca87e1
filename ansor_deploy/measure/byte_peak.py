"""The peak rate of a processor's multiply-adds of bytes, measured by a product in its caches.

The product has the target's default schedule, and so the same instructions as its kernels: VNNI
where available, 16-bit pairs elsewhere. With VNNI it reaches 97% of the instruction's own rate.
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

# Sizes of the product. Tiles of many sizes divide the rows, and rows and weights take at most half
# of a second cache.
ROWS, COLUMNS, STEPS = 240, 256, 512
CALLS, REPEATS = 4, 40  # some 20 ms in all; only the fastest calls count

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
    """The 10^9 operations a second of one core; a multiply-add counts as two.

    target: a target whose code this machine runs.
    """
    kind = multiplied_rows(target) or "uint8"
    library, steps = compiled(_TEXT.format(kind=kind), target, "default")
    seconds = _fastest(library, steps, kind)
    return 2 * ROWS * COLUMNS * STEPS / seconds / 1e9


def _fastest(library: Any, steps: Sequence[Mapping[str, Any]], kind: str) -> float:
    """Seconds of the fastest of many calls."""
    arrays = [np.ones((ROWS, STEPS), kind), np.ones((STEPS, COLUMNS), "int8")]
    given = [*map(native.tensor, arrays), native.empty((ROWS, COLUMNS), "int32")]
    known: dict[str, list[Any]] = {"task": given, "made": []}
    arguments: list[Any] = []
    for step in steps:
        known["made"] += [native.empty(one["shape"], one["dtype"]) for one in step["makes"]]
        arguments = [known[where][at] for where, at in step["arguments"]]
        library[step["function"]](*arguments)
    return min(native.times(library, COMPUTE, arguments, CALLS, REPEATS))
