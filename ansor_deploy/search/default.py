"""The schedule of a task that nobody has tuned: parallel, vectorised and tiled at once.

Three shapes of program cover what a network is fused into:
    tile: reductions that keep the contiguous axis (convolution, matmul, pooling), see tile.py
    rows: reductions along the contiguous axis (softmax, normalisation), a row at a time
    map:  everything else, one pass in parallel over contiguous vectors
It is deterministic, takes milliseconds, and is the first candidate of every search, so that a
tuned build is never worse than an untuned one.
"""

from __future__ import annotations

from typing import Any

from .._tvm import tvm
from ..model import blocks as b
from ..target import Target
from .rows import schedule_rows
from .tile import schedule_tile, vectorize_map

_EXPENSIVE = ("exp", "erf", "tanh", "pow", "sigmoid", "log", "if_then_else")


def default_schedule(mod: tvm.IRModule, target: Target) -> Any:
    """A schedule (`tvm.s_tir.Schedule`, traced) of the task's module.

    A program that no shape fits keeps its loops as they are: correct, and slow.
    """
    for attempt in (_whole, _each_alone):
        sch = tvm.s_tir.Schedule(mod, debug_mask="none")
        try:
            attempt(sch, target)
        # ScheduleError, and what TVM's primitives raise where they did not think of a program.
        except (RuntimeError, ValueError):
            continue
        return sch
    return tvm.s_tir.Schedule(mod, debug_mask="none")


def _whole(sch: Any, target: Target) -> None:
    _inline(sch)
    reductions = [block for block in b.blocks(sch) if b.is_reduction(sch.get(block))]
    if reductions and all(_along_rows(sch.get(block)) for block in reductions):
        schedule_rows(sch, target)
        return
    done: set[str] = set()
    for block in b.blocks(sch):
        name = sch.get(block).name_hint
        if name in done:
            continue
        if b.is_reduction(sch.get(block)):
            done.update(schedule_tile(sch, block, target))
        elif not _is_epilogue(sch, block):
            vectorize_map(sch, block, target)


def _each_alone(sch: Any, target: Target) -> None:
    """Where fusing the stages is not legal: each in parallel by itself."""
    _inline(sch)
    for block in b.blocks(sch):
        if not b.is_reduction(sch.get(block)):
            vectorize_map(sch, block, target)
            continue
        spatial = len(b.spatial_vars(sch.get(block)))
        loops = sch.get_loops(block)
        if 0 < spatial < len(loops):
            sch.parallel(sch.fuse(*loops[:spatial]))


def _inline(sch: Any) -> None:
    """Inline what is cheap or used once, but not padding: tiles read it many times."""
    for block in b.blocks(sch):
        node = sch.get(block)
        consumers = sch.get_consumers(block)
        if b.is_reduction(node) or not consumers:
            continue
        if any(b.is_reduction(sch.get(c)) for c in consumers) and b.has_call(node, *_EXPENSIVE):
            continue
        if len(consumers) > 1 and b.has_call(node):
            continue
        try:
            sch.compute_inline(block)
        except tvm.s_tir.ScheduleError:
            continue


def _is_epilogue(sch: Any, block: Any) -> bool:
    producers = sch.get_producers(block)
    return any(b.is_reduction(sch.get(producer)) for producer in producers)


def _along_rows(block: Any) -> bool:
    """Whether it reduces along the contiguous axis of every buffer that it reduces."""
    if b.is_contraction(block):
        return False
    spatial, reduced = b.spatial_vars(block), b.reduce_vars(block)
    for _, indices in b.operands(block):
        # Other operands hold one value a row, such as its maximum.
        if not any(b.uses(index, var) for index in indices for var in reduced):
            continue
        if spatial and b.uses(indices[-1], spatial[-1]):
            return int(block.iter_vars[len(spatial) - 1].dom.extent) == 1
    return True
