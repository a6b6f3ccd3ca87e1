"""Loop transformations that several rules share."""

from __future__ import annotations

import math
from typing import Any

from .._tvm import tvm
from ..target import Target
from . import blocks as b

# Calls that are worth a stage of their own before a reduction, which reads each result often.
COSTLY = ("exp", "erf", "tanh", "pow", "sigmoid", "log", "if_then_else")


def lanes(target: Target) -> int:
    """float32 elements of a vector register."""
    return max(1, target.vector_bytes // 4)


def extent(sch: Any, loop: Any) -> int:
    """Iterations of a loop."""
    return int(sch.get(loop).extent)


def split_lanes(sch: Any, loop: Any, target: Target) -> tuple[Any, Any]:
    """The loop as (vectors, lanes), lanes the widest power of two that divides it."""
    width = math.gcd(extent(sch, loop), lanes(target))
    vectors, inner = sch.split(loop, [None, width])
    return vectors, inner


def unroll_and_vectorize(sch: Any, stage: Any, count: int, target: Target) -> None:
    """The `count` innermost loops of a block as straight vector code.

    One vector register a vectorised loop: LLVM handles odd widths badly, unrolling well.
    """
    *outer, last = sch.get_loops(stage)[-count:]
    vectors, inner = split_lanes(sch, last, target)
    for loop in [*outer, vectors]:
        if extent(sch, loop) > 1:
            sch.unroll(loop)
    if extent(sch, inner) > 1:
        sch.vectorize(inner)


def parallel_map(sch: Any, block: Any, target: Target) -> None:
    """One pass: outer loops fused and parallel, the contiguous axis in vectors."""
    loops = sch.get_loops(block)
    if not loops:
        return
    steps, inner = split_lanes(sch, loops[-1], target)
    if extent(sch, inner) > 1:
        sch.vectorize(inner)
    outer = [*loops[:-1], steps]
    task = sch.fuse(*outer) if len(outer) > 1 else steps
    if extent(sch, task) > 1:
        sch.parallel(task)


def lane_partials(sch: Any, block: Any, vectors: int, target: Target) -> list[Any]:
    """A reduction as partial results, `vectors` registers full of them; the finest block first.

        s += a[k]
        -->
        p[v, lane] += a[k, v, lane] ; q[lane] += p[v, lane] ; s += q[lane]

    Done before a stage is moved: rfactor wants a reduction alone below its loops. Empty where the
    innermost reducing loop does not divide.
    """
    inner = sch.get_loops(block)[-1]
    width = math.gcd(extent(sch, inner), lanes(target))
    if width == 1 or extent(sch, inner) < 2 * width:
        return []
    rest, lane = sch.split(inner, [None, width])
    spatial = len(b.spatial_vars(sch.get(block)))
    if vectors == 1 or extent(sch, rest) % vectors or extent(sch, rest) == vectors:
        return [sch.rfactor(lane, factor_axis=spatial)]
    sch.split(rest, [None, vectors])
    joined = sch.rfactor(lane, factor_axis=spatial)
    vector = sch.get_loops(joined)[-2]
    return [sch.rfactor(vector, factor_axis=spatial), joined]


def vectorize_partials(sch: Any, partials: list[Any]) -> list[Any]:
    """Lanes innermost, those of several registers unrolled. Returns the blocks that start them.

    partials: what `lane_partials` gave, each moved to where it is computed, so that there is a
    loop for each of its axes, the factored axes first.
    """
    inits = []
    for stage in partials:
        own = sch.get_loops(stage)[-len(sch.get(stage).iter_vars) :]
        factored, others = own[: len(partials)], own[len(partials) :]
        sch.reorder(*others, *factored)
        sch.vectorize(factored[-1])
        for loop in factored[:-1]:
            sch.unroll(loop)
        init = sch.decompose_reduction(stage, others[0] if others else factored[0])
        *registers, lane = sch.get_loops(init)
        sch.vectorize(lane)
        if registers and len(partials) > 1 and stage is partials[0]:
            sch.unroll(registers[-1])
        inits.append(init)
    return inits


def index_of(block: Any, buffer: Any) -> list[Any] | None:
    """The index expressions with which a block reads a buffer; None if it does not load it."""
    return next((found for other, found in b.operands(block) if other.same_as(buffer)), None)


def is_layout_free(sch: Any, buffer: Any) -> bool:
    """Whether the buffer is a constant of the model, which may be stored in any order."""
    func = sch.mod["main"]
    free = [int(index) for index in (func.attrs or {}).get("layout_free_buffers", [])]
    return any(func.params[index].same_as(buffer) for index in free)


def pack(sch: Any, block: Any, position: int, axis: int, columns: int) -> Any:
    """Copy an operand into panels of `columns`: [.., c, ..] -> [c / columns, .., .., c % columns].

    The copy of a layout-free operand is marked, so that the builder runs it on the constant;
    any other is a stage of the program. Returns the copying block.
    """

    def panels(*indices: Any) -> list[Any]:
        rest = [index for at, index in enumerate(indices) if at != axis]
        return [indices[axis] // columns, *rest, indices[axis] % columns]

    free = is_layout_free(sch, sch.get(block).reads[position].source)
    copy = sch.cache_read(block, position, "global")
    sch.transform_layout(block, ("read", position), panels, pad_value=None)
    if free:
        sch.annotate(copy, "meta_schedule.layout_rewrite_preproc", True)
    return copy


def is_packing(sch: Any, block: Any) -> bool:
    """Whether the block is a copy that the builder takes out of the program."""
    annotations = sch.get(block).annotations or {}
    return "meta_schedule.layout_rewrite_preproc" in annotations


def epilogue(sch: Any, block: Any) -> Any | None:
    """The one elementwise consumer of a block, or None."""
    consumers = sch.get_consumers(block)
    if len(consumers) != 1 or b.is_reduction(sch.get(consumers[0])):
        return None
    return consumers[0]


def keeps_stage(sch: Any, block: Any) -> str:
    """Why a stage should not disappear into its consumers; "" where it should."""
    node = sch.get(block)
    consumers = [sch.get(consumer) for consumer in sch.get_consumers(block)]
    if b.is_reduction(node):
        return "it reduces"
    if not consumers:
        return "it is an output"
    if any(b.is_reduction(consumer) for consumer in consumers) and b.has_call(node, *COSTLY):
        return "a reduction would compute it again for every use"
    if len(consumers) > 1 and b.has_call(node):
        return "several consumers would each compute it"
    return ""


def inline_producers(sch: Any, block: Any) -> None:
    """Let cheap elementwise stages before a block disappear into it.

    Blocks are visited from the output backwards: a rule that moves a block comes before any that
    would be asked about its producers.
    """
    for producer in sch.get_producers(block):
        inline_producers(sch, producer)
        if keeps_stage(sch, producer):
            continue
        try:
            sch.compute_inline(producer)
        except tvm.s_tir.ScheduleError:
            continue
