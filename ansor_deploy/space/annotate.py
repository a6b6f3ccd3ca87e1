"""Annotation: what the rules left as it stands becomes parallel and vectorised.

On a GPU it is spread over blocks of threads. Tile sizes, unrolling and the stage at which a value
is computed are chosen where a rule makes the loops; here are the blocks that no rule finished.
"""

from typing import Any

from ..target import GpuLimits, Target
from .block_view import BlockView, blocks
from .loops import bound, extent, fused, parallel, parallel_map, unrolled
from .packing import is_packing
from .state import State

# Iterations a parallel loop should have for each core, so that none waits for the last.
TASKS_PER_CORE = (16, 4, 1)
# Threads of a block where a stage is one pass over its results.
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
    """Outer loops parallel, at least so many iterations; the rest unrolled by pragma."""
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
    """A stage of which no thread needs another: its results in blocks of threads."""
    sch = state.sch
    loops = sch.get_loops(view.rv)[: len(view.spatial)] or [sch.add_unit_loop(view.rv)]
    results = fused(sch, loops)
    sizes = [min(size, limits.max_threads_per_block) for size in THREADS]
    size = state.choose("parallel", sizes, guess=2, ordered=True)
    group, thread = sch.split(results, [None, min(size, extent(sch, results))])
    bound(sch, [group], "blockIdx.x")
    bound(sch, [thread], "threadIdx.x")
