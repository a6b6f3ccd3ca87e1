"""Taps that lie in the padding of an image for a whole tile are left out.

    for r (marked): for c: for w (unrolled): acc[w] += p[w0 + w + r * D, c] * k[r, c]
    -->
    for r: if L <= w0 + 3 + r * D and w0 + r * D < H: for c: ..        of four results, w

Here p is zero except from L to H. A convolution whose taps lie far apart, as in DeepLab, or whose
window is longer than a short signal, then only takes time for the taps that meet the image. H may
be a number that a run decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._lazy_tvm import collect, conjuncts, op_name, structural_map, substituted, tirx, tvm, uses
from ..system.checks import flag
from . import Mark, Place
from .prefetch import with_body

# Annotation of a loop over taps.
OUTSIDE = "ansor.outside"
# Testing taps pays where an image with its padding is at least this many times the image.
PADDED = 2
# A tap with this many channels is worth a test whether it lies in the image.
WORTH_ASKING = 16


@dataclass
class Padded:
    """A buffer that is zero outside of an image.

    limits: where the image begins and ends, by axis. reach: for each load that left-out taps keep
    near these limits, how far beyond them its tiles may read, by axis.
    """

    buffer: Any
    limits: dict[int, tuple[Any, Any]]
    reach: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))


def leaving_outside(sch: Any, loop: Any) -> None:
    """Let lowering leave out the taps of a loop that only meet padding."""
    sch.annotate(loop, OUTSIDE, True)


def inside(func: Any) -> Any:
    """The function with conditions in its marked loops. It must still have its blocks."""
    images = padded(func)
    loads = [load.source for load in collect(func.body, tvm.ir.TensorLoad)]
    body = structural_map(func.body, (tirx.For, lambda loop: _marked(loop, images)))
    for one in images:
        count = sum(one.buffer.same_as(buffer) for buffer in loads)
        one.reach = {at: reach for at, reach in one.reach.items() if len(reach) == count}
    if any(one.reach for one in images):
        body = structural_map(body, (tirx.For, lambda loop: _padding(loop, images)))
    return func.with_body(body)


def padded(func: Any) -> list[Padded]:
    """The buffers that blocks of a function pad with zeros."""
    stored = [store.buffer for store in collect(func.body, tirx.BufferStore)]
    given = [one for one in func.params if not any(one.same_as(other) for other in stored)]
    found = (_padded(block, given) for block in collect(func.body, tvm.s_tir.SBlock))
    return [one for one in found if one is not None]


def _marked(loop: Any, images: Sequence[Padded]) -> Any:
    """A loop over taps; if it is marked, with the condition that the tile's taps meet the image."""
    if OUTSIDE not in (loop.annotations or {}):
        return loop
    conditions: list[Any] = []
    for one, at, index in _indices(loop, images, tvm.ir.TensorLoad):
        if uses(index, loop.loop_var) and _grows(index, loop):
            first, last = _ends(index, loop)
            low, high = one.limits[at]
            conditions += [low <= last, first < high]
            reach = tvm.sym.Analyzer().simplify(last - first)
            if isinstance(reach, tirx.IntImm):
                one.reach[at].append(int(reach))
    return with_body(loop, _guarded(conditions, loop.body), OUTSIDE)


def _padding(loop: Any, images: Sequence[Padded]) -> Any:
    """A loop that writes padding, with the condition that some tile reads it."""
    inner = collect(loop.body, tirx.For)
    conditions: list[Any] = []
    for one, at, index in _indices(loop, images, tirx.BufferStore):
        moves = uses(index, loop.loop_var) and not any(uses(index, n.loop_var) for n in inner)
        if moves and at in one.reach:
            (low, high), reach = one.limits[at], max(one.reach[at])
            conditions += [low - reach <= index, index < high + reach]
    if not conditions:
        return loop
    return with_body(loop, _guarded(conditions, loop.body), OUTSIDE)


def _guarded(conditions: Sequence[Any], body: Any) -> Any:
    return tirx.IfThenElse(tirx.all(*conditions), body, None) if conditions else body


def _indices(loop: Any, images: Sequence[Padded], kind: Any) -> Iterator[tuple[Padded, int, Any]]:
    """The accesses of one kind to padded buffers within a loop: (buffer, axis, index in loops)."""
    for realize in collect(loop.body, tvm.s_tir.SBlockRealize):
        axes = [axis.var for axis in realize.block.iter_vars]
        values = list(zip(axes, realize.iter_values, strict=True))
        for access in collect(realize.block.body, kind):
            for one in images:
                if _buffer(access).same_as(one.buffer):
                    for at in one.limits:
                        yield one, at, substituted(access.indices[at], values)


def _buffer(access: Any) -> Any:
    return access.buffer if isinstance(access, tirx.BufferStore) else access.source


def _padded(block: Any, given: Sequence[Any]) -> Padded | None:
    """The buffer that a block pads with zeros, or None. given: what the function only reads."""
    store = block.body
    if not isinstance(store, tirx.BufferStore) or op_name(store.value) != "prim.if_then_else":
        return None
    condition, _, other = store.value.args
    if getattr(other, "value", None) != 0:
        return None
    limits: dict[int, tuple[Any, Any]] = {}
    for one in conjuncts(condition):
        for at, index in enumerate(store.indices):
            low, high = limits.get(at, (0, store.buffer.shape[at]))
            if isinstance(one, tirx.LE) and one.b.same_as(index) and _is_known(one.a, given):
                limits[at] = one.a, high
            if isinstance(one, tirx.LT) and _is_known(one.b, given):
                before = tvm.sym.Analyzer().simplify(index - one.a)
                if isinstance(before, tirx.IntImm):
                    limits[at] = low, one.b + before
    return Padded(store.buffer, limits)


def _is_known(limit: Any, given: Sequence[Any]) -> bool:
    """Whether a limit is the same everywhere: constant, or of numbers that the function reads."""
    used = collect(limit, tirx.Var)
    return all(any(one.same_as(other) for other in given) for one in used)


def _grows(index: Any, loop: Any) -> bool:
    """Whether an index grows with all loops inside a loop."""
    inner = [one.loop_var for one in collect(loop.body, tirx.For)]
    others = collect(index, tirx.Sub, tirx.FloorMod, tvm.ir.TensorLoad)
    if any(uses(other, var) for other in others for var in inner):
        return False
    factors = [getattr(product.b, "value", -1) for product in collect(index, tirx.Mul)]
    return min(factors, default=1) > 0


def _ends(index: Any, loop: Any) -> tuple[Any, Any]:
    """An index at the first and the last steps of the loops inside a loop, with which it grows."""
    inner = collect(loop.body, tirx.For)
    first = substituted(index, [(one.loop_var, one.min) for one in inner])
    last = substituted(index, [(one.loop_var, one.min + one.extent - 1) for one in inner])
    return first, last


MARK = Mark({OUTSIDE: flag}, Place.BLOCKS, inside, verbs=("leaving_outside",))
