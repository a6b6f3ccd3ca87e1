"""Put the steps of long loops into groups, so that a run skips whole groups.

    for i in 2048: if i % 512 < n: y[i / 512, i % 512] = f(..)
    -->
    for g in 256: if 8 g % 512 < n: for s in 8: if (8 g + s) % 512 < n: y[..] = f(..)

A step that is skipped takes a nanosecond. Loops over the rows of all heads have thousands, which
took longer than the few rows that count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._tvm import structural_map, substituted, tirx

_LONG = 128  # steps
_SIZES = (8, 7, 6, 5, 4)  # steps of a group, the best first


def in_groups(body: Any, loops: Iterable[Any]) -> Any:
    """A function's body with those of these loops in groups that are long."""
    sizes = {loop.loop_var: size for loop in loops if (size := _size(loop))}
    if not sizes:
        return body
    return structural_map(body, (tirx.For, lambda one: _grouped(one, sizes.get(one.loop_var))))


def _size(loop: Any) -> int | None:
    """The steps of a loop's groups; None where it stays as it is."""
    constant = isinstance(loop.extent, tirx.IntImm) and isinstance(loop.min, tirx.IntImm)
    if loop.annotations or not constant or int(loop.min) or int(loop.extent) < _LONG:
        return None
    return next((size for size in _SIZES if int(loop.extent) % size == 0), None)


def _grouped(loop: Any, size: int | None) -> Any:
    if size is None:
        return loop
    dtype = str(loop.loop_var.ty.dtype)
    group, step = (tirx.Var(name, dtype) for name in ("group", "step"))
    inside = substituted(loop.body, [(loop.loop_var, group * size + step)])
    steps = tirx.For(step, tirx.const(0, dtype), size, tirx.ForKind.SERIAL, inside)
    count = tirx.const(int(loop.extent) // size, dtype)
    return tirx.For(group, loop.min, count, loop.kind, steps)
