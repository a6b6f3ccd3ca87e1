"""Annotation: what the rules left as it stands becomes parallel and vectorised.

On a GPU it is spread over blocks of threads.

Tile sizes, unrolling and places of computation are chosen where a rule makes the loops; here are
the blocks that no rule finished.
"""

from __future__ import annotations

from typing import Any

from ..target import Target
from . import blocks as b
from . import loops as l
from .state import State
from .threads import bind_map

# Iterations a parallel loop should have for each core, so that none waits for the last.
TASKS_PER_CORE = (16, 4, 1)


def annotate(state: State, target: Target) -> None:
    """Finish a state: afterwards its schedule is a complete program."""
    sch = state.sch
    for block in b.blocks(sch):
        node = sch.get(block)
        if node.name_hint in state.done or l.is_packing(sch, block):
            continue
        state.node = node.name_hint
        if target.kind == "cuda":
            bind_map(state, block, target)
        elif b.is_reduction(node):
            _annotate_reduction(state, block, target)
        else:
            l.parallel_map(sch, block, target)


def _annotate_reduction(state: State, block: Any, target: Target) -> None:
    """Outer loops parallel, at least so many iterations; the rest unrolled by pragma."""
    sch = state.sch
    spatial = sch.get_loops(block)[: len(b.spatial_vars(sch.get(block)))]
    wanted = state.choose("parallel", TASKS_PER_CORE) * target.cores
    fused: list[Any] = []
    count = 1
    for loop in spatial:
        if fused and count >= wanted:
            break
        fused.append(loop)
        count *= l.extent(sch, loop)
    if not fused:
        return
    outer = sch.fuse(*fused) if len(fused) > 1 else fused[0]
    sch.parallel(outer)
    steps = state.choose("unroll", [0, 16, 64, 512])
    if steps:
        sch.annotate(outer, "pragma_auto_unroll_max_step", steps)
        sch.annotate(outer, "pragma_unroll_explicit", True)
