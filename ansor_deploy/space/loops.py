"""Verbs for the loops of a schedule, which rules share."""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .._tvm import tirx, tvm
from ..marks.dot import DOT
from ..marks.long_dot import LONG_DOT
from ..marks.partial_lanes import kept_in_lanes
from ..marks.partition import partitioned
from ..marks.word_dot import WORD_DOT
from ..target import Target
from .block_view import BlockView, divisions
from .state import State

# Of multi-level tiles: the widest innermost tile of an axis.
INNERMOST = 64
# How they are nested, outermost first: axes of the result, and those that it reduces.
LEVELS = "SSRSRS"
# Rows of the innermost tile that is guessed.
ROWS = 4
# Iterations of a parallel loop for each core, so that none waits long for the last.
TASKS = 16
# The guess first, and not in order: records know each by its index.
UNROLL = (16, 0, 64, 512)


def lanes(target: Target, bits: int = 32) -> int:
    """Elements of a vector register, of so many bits each."""
    return max(1, target.vector_bytes * 8 // bits)


def extent(sch: Any, loop: Any) -> int:
    """Iterations of a loop."""
    return int(sch.get(loop).extent)


def fused(sch: Any, loops: Sequence[Any]) -> Any:
    """Nested loops as one."""
    return sch.fuse(*loops) if len(loops) > 1 else loops[0]


def parallel(sch: Any, loops: Sequence[Any]) -> Any:
    """Nested loops as one, with its iterations shared among the cores."""
    task = fused(sch, loops)
    sch.parallel(task)
    return task


def bound(sch: Any, loops: Sequence[Any], axis: str) -> Any:
    """Nested loops as one, over the blocks or threads of a GPU. axis: such as "threadIdx.x"."""
    loop = fused(sch, loops)
    sch.bind(loop, axis)
    return loop


def vectorized(sch: Any, loop: Any, target: Target, bits: int = 32) -> Any:
    """A loop as one over vectors, which is returned, around vector instructions.

    It is marked where the last vector is cut short. bits: of an element.
    """
    size = extent(sch, loop)
    width = vector_width(size, target, bits)
    vectors, lane = sch.split(loop, [None, width])
    if size % width:
        partitioned(sch, vectors)
        partitioned(sch, lane)
    if width > 1:
        sch.vectorize(lane)
    return vectors


def vector_width(size: int, target: Target, bits: int = 32) -> int:
    """Elements of the vectors of a row: whole registers, if that makes half as many at most.

    Else the widest power of two that divides the row.
    """
    width = lanes(target, bits)
    even = math.gcd(size, width)
    return width if size > width and 2 * math.ceil(size / width) <= size // even + 1 else even


def split_lanes(sch: Any, loop: Any, target: Target, bits: int = 32) -> tuple[Any, ...]:
    """The loop as (vectors, lanes), lanes the widest power of two that divides it."""
    width = math.gcd(extent(sch, loop), lanes(target, bits))
    return tuple(sch.split(loop, [None, width]))


def is_marked(sch: Any, loop: Any) -> bool:
    """Whether lowering does something about this loop, which can be fused with none then."""
    return bool(sch.get(loop).annotations)


def partition_columns(sch: Any, block: Any, columns: int) -> None:
    """Mark the innermost loops of a block, which together make so many columns."""
    for loop in reversed(sch.get_loops(block)):
        if columns == 1 or sch.get(loop).kind == tirx.ForKind.PARALLEL:
            break
        if {DOT, LONG_DOT, WORD_DOT} & set(sch.get(loop).annotations):
            continue  # it is of steps, between the vectors and their lanes, or innermost
        columns //= extent(sch, loop)
        partitioned(sch, loop)


def written_out(
    sch: Any, block: Any, count: int, target: Target, within: Sequence[Any] = (), columns: int = 0
) -> None:
    """The `count` innermost loops of a block as straight vector code.

    One vector register a vectorised loop: LLVM handles odd widths badly, unrolling well.
    within: loops inside of these, which are brought between the vectors and their lanes. columns:
    of the tile whose vectors these are, where the last of them may be cut short.
    """
    loops = sch.get_loops(block)
    *outer, last = loops[len(loops) - len(within) - count : len(loops) - len(within)]
    width = math.gcd(columns or extent(sch, last), lanes(target, BlockView(sch, block).bits))
    cut = extent(sch, last) % width
    vectors, inner = sch.split(last, [None, width])
    for loop in [vectors, inner] if cut else []:
        partitioned(sch, loop)
    if within:
        sch.reorder(vectors, *within, inner)
    for loop in [*outer, vectors, *within]:
        if extent(sch, loop) > 1:
            sch.unroll(loop)
    if extent(sch, inner) > 1:
        sch.vectorize(inner)


def unrolled(
    state: State, loop: Any, steps: Sequence[int], guess: int = 0, *, ordered: bool = False
) -> None:
    """What lies in a loop written out by the compiler, up to so many steps, which are a choice.

    ordered: whether the steps stand in order; some that records know by their index do not.
    """
    if chosen := state.choose("unroll", steps, guess, ordered=ordered):
        state.sch.annotate(loop, "pragma_auto_unroll_max_step", chosen)
        state.sch.annotate(loop, "pragma_unroll_explicit", True)


def tiled(
    state: State, view: BlockView, pattern: str, limit: int, guesses: Sequence[Sequence[int]]
) -> list[list[Any]]:
    """Split every loop of a block, and nest the parts by levels; these, outermost first.

    pattern: of the levels, such as SSRSRS: S for those of the result's axes, R for the reducing
    ones. limit: of the last level's extents. guesses: extents of the parts, for each loop.
    """
    loops, rank = state.sch.get_loops(view.rv), len(view.spatial)
    parts = [
        state.sample_tile(loop, pattern.count("S" if at < rank else "R"), limit, guess)
        for at, (loop, guess) in enumerate(zip(loops, guesses, strict=True))
    ]
    return _nested(state.sch, pattern, parts[:rank], parts[rank:])


def split_levels(
    sch: Any,
    block: Any,
    pattern: str,
    spatial: Sequence[Sequence[int]],
    reduced: Sequence[Sequence[int]],
) -> list[list[Any]]:
    """As `tiled`, into parts of the given extents: of the result's axes, and of the reducing."""
    loops = sch.get_loops(block)
    parts = [
        list(sch.split(loop, factors))
        for loop, factors in zip(loops, [*spatial, *reduced], strict=True)
    ]
    return _nested(sch, pattern, parts[: len(spatial)], parts[len(spatial) :])


def _nested(
    sch: Any, pattern: str, spatial: Sequence[Sequence[Any]], reduced: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """Parts of loops nested by levels; these, outermost first."""
    levels = {"S": zip(*spatial, strict=True), "R": zip(*reduced, strict=True)}
    found = [list(next(levels[kind])) for kind in pattern]
    sch.reorder(*(loop for level in found for loop in level))
    return found


def multi_level_tile(state: State, view: BlockView, target: Target) -> list[list[Any]]:
    """Split and order a block's loops; the levels, outermost first: S S R S R S.

    The guess is vectors of the contiguous axis and some rows of the others: both reuse operands.
    """
    inline_producers(state.sch, view.rv)
    *rows, columns = view.spatial
    inner = [*(math.gcd(size, ROWS) for size in rows), math.gcd(columns, lanes(target, view.bits))]
    spatial = [[size // own, 1, 1, own] for size, own in zip(view.spatial, inner, strict=True)]
    reducing = [[size, 1] for size in view.reduced]
    return tiled(state, view, LEVELS, INNERMOST, spatial + reducing)


def finish_levels(state: State, block: str, levels: list[list[Any]], target: Target) -> None:
    """Outer tiles parallel, the innermost loop in vectors, the rest unrolled by pragma.

    levels: the six of the pattern "SSRSRS", as `split_levels` and `tiled` give them; ValueError
    for other than six. Padding and other producers that are not inlined: where they are computed
    is a choice.
    """
    if len(levels) != len(LEVELS):
        wanted = f"the {len(LEVELS)} levels of the pattern {LEVELS}"
        raise ValueError(f"finish_levels takes {wanted}, and not {len(levels)}")
    sch = state.sch
    stage = state.block(block)
    vectorized(sch, levels[5][-1], target)
    task = parallel(sch, levels[0])
    view = BlockView(sch, stage)
    # What a tile reads at quotients has no constant extent, and stays at the root.
    for producer in [] if divisions(view.node.body, "FloorDiv") else view.producers:
        _place(state, producer, [task, *(level[-1] for level in levels[1:4])], target)
    # A block without its init is no reduction any more: annotate first, then decompose.
    init = sch.decompose_reduction(stage, levels[2][0])
    inner = sch.get_loops(init)[-1]
    if extent(sch, inner) > 1:
        sch.vectorize(inner)
    unrolled(state, task, UNROLL)
    state.finish(stage, init)


def _place(state: State, producer: BlockView, loops: Sequence[Any], target: Target) -> None:
    """Compute a stage at the root, or within one of the loops of its one consumer."""
    sch = state.sch
    if producer.name in state.done or producer.is_reduction or len(producer.consumers) > 1:
        return
    if depth := state.choose("location", range(len(loops) + 1), ordered=True):
        sch.compute_at(producer.rv, loops[depth - 1], preserve_unit_loops=True)
        vectorized(sch, sch.get_loops(producer.rv)[-1], target)
    else:
        parallel_map(sch, producer.rv, target)
    state.finish(producer.rv)


def parallel_map(sch: Any, block: Any, target: Target) -> None:
    """One pass: outer loops fused and parallel, the contiguous axis in vectors.

    As few of them as give the cores enough to share: where a step of the fused loop is, takes
    divisions to find out.
    """
    loops = sch.get_loops(block)
    if not loops:
        return
    *outer, last = loops
    vectors = vectorized(sch, last, target, BlockView(sch, block).bits)
    if not is_marked(sch, vectors):
        outer.append(vectors)
    task = fused(sch, _enough(sch, outer or [vectors], TASKS * target.cores))
    if extent(sch, task) > 1:
        sch.parallel(task)


def _enough(sch: Any, loops: Sequence[Any], wanted: int) -> Sequence[Any]:
    """The outermost of nested loops that together have so many iterations, or all."""
    count = 1
    for number, loop in enumerate(loops, start=1):
        count *= extent(sch, loop)
        if count >= wanted:
            return loops[:number]
    return loops


def reduced_in_lanes(sch: Any, block: Any, vectors: int, target: Target) -> Any:
    """Let lowering keep a partial result in each lane of so many registers, whatever the length.

    Of rows shorter than a register, lanes are the widest power of two that fits.

    The reduction has been moved to where it is computed. Returns the block that starts it.
    """
    reducing = len(BlockView(sch, block).reduced)
    loops = sch.get_loops(block)
    width = min(lanes(target), 1 << extent(sch, loops[-1]).bit_length() - 1)
    kept_in_lanes(sch, loops[-1], vectors, width)
    return sch.decompose_reduction(block, loops[-reducing])


def inline_producers(sch: Any, block: Any) -> None:
    """Let cheap elementwise stages before a block disappear into it.

    Blocks are visited from the output backwards: a rule that moves a block comes before any that
    would be asked about its producers.
    """
    for producer in BlockView(sch, block).producers:
        if not _is_there(sch, producer.rv):  # inlined as the producer of another
            continue
        inline_producers(sch, producer.rv)
        if not producer.stays:
            with suppress(tvm.s_tir.ScheduleError):
                sch.compute_inline(producer.rv)


def _is_there(sch: Any, block: Any) -> bool:
    try:
        return sch.get(block) is not None
    except ValueError:
        return False
