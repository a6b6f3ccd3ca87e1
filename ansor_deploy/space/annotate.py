"""Annotation: blocks that no rule finished become parallel and vectorised.

On a GPU they are spread over blocks of threads. Rules choose tile sizes, unrolling and where a
value is computed; annotation leaves the structure of the loops as it is.
"""

from typing import Any

from ..target import GpuLimits, Target
from .block_view import BlockView, blocks
from .loops import bound, extent, fused, parallel, parallel_map, unrolled
from .packing import is_packing
from .state import State

# A parallel loop should have this many iterations for each core, so that no core waits for another.
TASKS_PER_CORE = (16, 4, 1)
# Threads in a block of an elementwise stage.
THREADS = (64, 128, 256, 512)


def annotate(state: State, target: Target) -> None:
    """Finish a state: afterwards its schedule is a complete program."""
    sch = state.sch
    for block in blocks(sch):
        view = BlockView(sch, block)
        if view.name in state.done or is_packing(sch, block) or view.holds_blocks:
            continue
        state.node = view.name
        if target.gpu is not None:
            _bind_map(state, view, target.gpu)
        elif view.is_reduction:
            _annotate_reduction(state, view, target)
        else:
            parallel_map(sch, block, target)


def _annotate_reduction(state: State, view: BlockView, target: Target) -> None:
    """Make outer loops parallel until they have enough iterations; unroll the rest by pragma."""
    sch = state.sch
    spatial = sch.get_loops(view.rv)[: len(view.spatial)]
    wanted = state.choose("parallel", TASKS_PER_CORE, ordered=True) * target.cores
    outer: list[Any] = []
    count = 1
    for loop in spatial:
        if outer and count >= wanted:
            break
        outer.append(loop)
        count *= extent(sch, loop)
    if outer:
        unrolled(state, parallel(sch, outer), (0, 16, 64, 512), ordered=True)


def _bind_map(state: State, view: BlockView, limits: GpuLimits) -> None:
    """Spread a stage over blocks of threads: its results do not depend on each other."""
    sch = state.sch
    loops = sch.get_loops(view.rv)[: len(view.spatial)] or [sch.add_unit_loop(view.rv)]
    results = fused(sch, loops)
    sizes = [min(size, limits.max_threads_per_block) for size in THREADS]
    size = state.choose("parallel", sizes, guess=2, ordered=True)
    group, thread = sch.split(results, [None, min(size, extent(sch, results))])
    bound(sch, [group], "blockIdx.x")
    bound(sch, [thread], "threadIdx.x")
