"""Mark loops over taps where a run decides how many of them meet the image.

    for r in 64: for c in 24: for w (unrolled): acc[w] += p[w0 + w + r, c] * k[r, c]
    p: zero from n + 32 on

A short signal meets few taps of a long window. The schedule is that of the longest signal, which
may meet them all, so only here it is known that others do not. Lowering leaves out the taps that
lie in the padding for a whole tile (`marks/outside.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from ..._tvm import collect, structural_map, tirx, tvm, uses
from ...marks.outside import OUTSIDE, WORTH_ASKING, Padded, padded
from ...space.block_view import REDUCE, sums_products
from ..blocks import Leaf, leaves, outside


def asking_taps(func: tirx.PrimFunc) -> Any:
    """The function's body with marks on the loops over taps of images that end where a run says."""
    images = list(_open(padded(func)))
    found = [loop for leaf in leaves(func.body) for loop in _over_taps(leaf, images)]
    if not found:
        return func.body

    def marked(loop: Any) -> Any:
        if not any(loop.loop_var.same_as(one.loop_var) for one in found):
            return loop
        kept = {**(loop.annotations or {}), OUTSIDE: True}
        words = (loop.loop_var, loop.min, loop.extent, loop.kind, loop.body, loop.thread_binding)
        return tirx.For(*words, kept, loop.step, loop.span)

    return structural_map(func.body, (tirx.For, marked))


def _open(images: Sequence[Padded]) -> Iterator[tuple[Any, int]]:
    """The images that end where a run says, and the axes along which they do."""
    for one in images:
        for axis, (_, high) in one.limits.items():
            if collect(high, tvm.ir.TensorLoad):
                yield one.buffer, axis


def _over_taps(leaf: Leaf, images: Sequence[tuple[Any, int]]) -> Iterator[Any]:
    """The loops over taps along open axes in which enough is summed up to be worth a test."""
    store = leaf.block.body
    if leaf.block.init is not None or not sums_products(store) or store.buffer.dtype != "float32":
        return
    steps = [axis.var for axis in leaf.block.iter_vars if axis.iter_type == REDUCE]
    indices = [
        outside(load.indices[axis], leaf.realize)
        for load in collect(store.value, tvm.ir.TensorLoad)
        for image, axis in images
        if load.source.same_as(image)
    ]
    for at, loop in enumerate(leaf.loops):
        inner = [one for one in leaf.loops[at + 1 :] if _moves(steps, one, leaf)]
        summed = prod(int(one.extent) for one in inner)
        taps = loop.kind == tirx.ForKind.SERIAL and _moves(steps, loop, leaf)
        if taps and summed >= WORTH_ASKING and any(uses(one, loop.loop_var) for one in indices):
            yield loop


def _moves(steps: Sequence[Any], loop: Any, leaf: Leaf) -> bool:
    """Whether a loop goes over steps of a sum."""
    return any(uses(outside(one, leaf.realize), loop.loop_var) for one in steps)
