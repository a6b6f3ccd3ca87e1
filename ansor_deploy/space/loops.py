"""Verbs that change the loops of a schedule; rules share them."""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .._tvm import collect, tirx, tvm, uses
from ..marks.dot import DOT
from ..marks.long_dot import LONG_DOT
from ..marks.partial_lanes import kept_in_lanes
from ..marks.partition import partitioned
from ..marks.word_dot import WORD_DOT
from ..system.host import architecture
from ..target import Target
from .block_view import BlockView, divisions
from .code_size import is_condition
from .contiguous import contiguous_axes
from .state import State

# Most iterations of the innermost level of a multi-level tile, along an axis.
INNERMOST = 64
# The levels of a multi-level tile, outermost first: S for the result's axes, R for reducing ones.
LEVELS = "SSRSRS"
# The guess has this many rows in the innermost tile.
ROWS = 4
# A parallel loop should have this many iterations for each core, so that no core waits for long.
TASKS = 16
BYTE = 8  # bits
# Bytes of the widest vectors before AVX-512.
_WITH_PACKS = 32
_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE)
# Rows of this many vectors are not joined: they lose nothing by a shorter last one, and a run that
# ends them earlier skips the rest of a row at once.
_LONG_ROW = 32
# Steps that a pragma may unroll; the guess first. Do not sort: records know each by its index.
UNROLL = (16, 0, 64, 512)


def lanes(target: Target, bits: int = 32) -> int:
    """How many elements of this many bits a vector register holds."""
    return max(1, target.vector_bytes * 8 // bits)


def extent(sch: Any, loop: Any) -> int:
    """Iterations of a loop."""
    return int(sch.get(loop).extent)


def fused(sch: Any, loops: Sequence[Any]) -> Any:
    """Fuse nested loops into one."""
    return sch.fuse(*loops) if len(loops) > 1 else loops[0]


def parallel(sch: Any, loops: Sequence[Any]) -> Any:
    """Fuse nested loops into one, and share its iterations among the cores."""
    task = fused(sch, loops)
    sch.parallel(task)
    return task


def bound(sch: Any, loops: Sequence[Any], axis: str) -> Any:
    """Fuse nested loops into one, bound to a GPU's blocks or threads. axis: e.g. "threadIdx.x"."""
    loop = fused(sch, loops)
    sch.bind(loop, axis)
    return loop


def vectorized(sch: Any, loop: Any, target: Target, bits: int = 32, *, parted: bool = False) -> Any:
    """Vectorise a loop. Returns the loop over the vectors.

    Both loops are partitioned where the last vector is shorter, or if `parted` says so. bits: bits
    of an element.
    """
    size = extent(sch, loop)
    width = vector_width(size, target, bits)
    vectors, lane = sch.split(loop, [None, width])
    if size % width or parted:
        partitioned(sch, vectors)
        partitioned(sch, lane)
    if width > 1:
        sch.vectorize(lane)
    return vectors


def vector_width(size: int, target: Target, bits: int = 32) -> int:
    """How many elements the vectors of a row have.

    A whole register, if that makes at most half as many vectors (rounded up) as the widest power
    of two that divides the row; else that power of two.
    """
    width = lanes(target, bits)
    even = math.gcd(size, width)
    return width if size > width and 2 * math.ceil(size / width) <= size // even + 1 else even


def split_lanes(sch: Any, loop: Any, target: Target, bits: int = 32) -> tuple[Any, ...]:
    """Split a loop into (vectors, lanes); the lanes are the widest power of two that divides it."""
    width = math.gcd(extent(sch, loop), lanes(target, bits))
    return tuple(sch.split(loop, [None, width]))


def is_marked(sch: Any, loop: Any) -> bool:
    """Whether a loop has an annotation for lowering, and so cannot be fused with another."""
    return bool(sch.get(loop).annotations)


def partition_columns(sch: Any, block: Any, columns: int) -> None:
    """Partition the innermost loops of a block that together make this many columns."""
    for loop in reversed(sch.get_loops(block)):
        if columns == 1 or sch.get(loop).kind == tirx.ForKind.PARALLEL:
            break
        if {DOT, LONG_DOT, WORD_DOT} & set(sch.get(loop).annotations):
            continue  # a loop over reducing steps, between the vectors and their lanes or innermost
        columns //= extent(sch, loop)
        partitioned(sch, loop)


def written_out(
    sch: Any, block: Any, count: int, target: Target, within: Sequence[Any] = (), columns: int = 0
) -> None:
    """Turn the `count` innermost loops of a block into straight vector code.

    A vectorised loop fills one register, and the rest is unrolled: LLVM handles vectors of odd
    widths badly. within: loops inside these, which move between the vectors and their lanes.
    columns: the columns of the tile, where the block may have fewer in the last vectors.
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
    """Choose up to how many steps the compiler unrolls the loops inside a loop.

    ordered: whether the steps are in order. Some lists are not, since records know an option by
    its index.
    """
    if chosen := state.choose("unroll", steps, guess, ordered=ordered):
        state.sch.annotate(loop, "pragma_auto_unroll_max_step", chosen)
        state.sch.annotate(loop, "pragma_unroll_explicit", True)


def tiled(
    state: State, view: BlockView, pattern: str, limit: int, guesses: Sequence[Sequence[int]]
) -> list[list[Any]]:
    """Split every loop of a block and nest the parts. Returns the levels, outermost first.

    pattern: the kinds of the levels, such as SSRSRS: S for the result's axes, R for reducing ones.
    limit: the largest extent in the last level. guesses: for each loop, the extents of its parts.
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
    """The same as `tiled`, with given extents of the parts. Returns the levels, outermost first.

    spatial, reduced: the extents of the parts, for each of the result's and the reducing axes.
    """
    loops = sch.get_loops(block)
    parts = [
        list(sch.split(loop, factors))
        for loop, factors in zip(loops, [*spatial, *reduced], strict=True)
    ]
    return _nested(sch, pattern, parts[: len(spatial)], parts[len(spatial) :])


def _nested(
    sch: Any, pattern: str, spatial: Sequence[Sequence[Any]], reduced: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """Nest the parts of loops by levels. Returns the levels, outermost first."""
    levels = {"S": zip(*spatial, strict=True), "R": zip(*reduced, strict=True)}
    found = [list(next(levels[kind])) for kind in pattern]
    sch.reorder(*(loop for level in found for loop in level))
    return found


def multi_level_tile(state: State, view: BlockView, target: Target) -> list[list[Any]]:
    """Split and order a block's loops by SSRSRS. Returns the six levels, outermost first.

    The guess for the innermost tile is a vector of the contiguous axis by a few rows of the other
    axes, so that both operands are reused.
    """
    inline_producers(state.sch, view.rv)
    *rows, columns = view.spatial
    inner = [*(math.gcd(size, ROWS) for size in rows), math.gcd(columns, lanes(target, view.bits))]
    spatial = [[size // own, 1, 1, own] for size, own in zip(view.spatial, inner, strict=True)]
    reducing = [[size, 1] for size in view.reduced]
    return tiled(state, view, LEVELS, INNERMOST, spatial + reducing)


def finish_levels(state: State, block: str, levels: list[list[Any]], target: Target) -> None:
    """Make the outer tiles parallel, vectorise the innermost loop and unroll the rest by pragma.

    levels: the six levels of the pattern "SSRSRS", as `split_levels` or `tiled` returns them;
    ValueError for another number. Where padding and other producers that are not inlined are
    computed is a choice.
    """
    if len(levels) != len(LEVELS):
        wanted = f"the {len(LEVELS)} levels of the pattern {LEVELS}"
        raise ValueError(f"finish_levels takes {wanted}, and not {len(levels)}")
    sch = state.sch
    stage = state.block(block)
    vectorized(sch, levels[5][-1], target)
    task = parallel(sch, levels[0])
    view = BlockView(sch, stage)
    # Where a tile reads at quotients, regions have no constant extent: producers stay at the root.
    for producer in [] if divisions(view.node.body, "FloorDiv") else view.producers:
        _place(state, producer, [task, *(level[-1] for level in levels[1:4])], target)
    # Annotate before decomposing: without its init the block is no reduction any more.
    init = sch.decompose_reduction(stage, levels[2][0])
    inner = sch.get_loops(init)[-1]
    if extent(sch, inner) > 1:
        sch.vectorize(inner)
    unrolled(state, task, UNROLL)
    state.finish(stage, init)


def _place(state: State, producer: BlockView, loops: Sequence[Any], target: Target) -> None:
    """Choose whether a stage is computed at the root or inside a loop of its only consumer."""
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
    """Schedule an elementwise stage: outer loops fused and parallel, the last one vectorised.

    No more loops are fused than give the cores enough tasks: each step of a fused loop takes
    divisions to find its place.
    """
    loops, view = sch.get_loops(block), BlockView(sch, block)
    if not loops:
        return
    bits = _bits(view, target)
    *outer, last = _joined(sch, view, loops, lanes(target, bits))
    width = vector_width(extent(sch, last), target, bits)
    parted = len(outer) == len(loops) - 1 and _ends_with_vectors(view, width)
    vectors = vectorized(sch, last, target, bits, parted=parted)
    if not is_marked(sch, vectors):
        outer.append(vectors)
    task = fused(sch, _enough(sch, outer or [vectors], TASKS * target.cores))
    if extent(sch, task) > 1:
        sch.parallel(task)


def _ends_with_vectors(view: BlockView, width: int) -> bool:
    """Whether a stage has parts along its last axis, as a concatenation has, of whole vectors.

    A vector with elements of two parts would be a loop of which nobody knows where it ends.
    """
    last = view.node.iter_vars[-1].var
    chosen = [one.args[0] for one in collect(view.node.body, tvm.ir.Call) if is_condition(one)]
    compared = [one for condition in chosen for one in collect(condition, *_COMPARISONS)]
    ends = [_end(one, last) for one in compared if uses(one, last)]
    return bool(ends) and not any(end is None or end % width for end in ends)


def _end(comparison: Any, last: Any) -> int | None:
    """Where a comparison of a place with a constant changes; None for other comparisons."""
    turned = isinstance(comparison, (tirx.GT, tirx.GE))
    less, more = (comparison.b, comparison.a) if turned else (comparison.a, comparison.b)
    included = isinstance(comparison, (tirx.LE, tirx.GE))
    if less.same_as(last) and isinstance(more, tirx.IntImm):
        return int(more) + included
    if more.same_as(last) and isinstance(less, tirx.IntImm):
        return int(less) + (not included)
    return None


def _joined(sch: Any, view: BlockView, loops: Sequence[Any], width: int) -> list[Any]:
    """The loops of a stage; as many short rows as fill whole vectors, or all, are one loop.

    If more are one, TVM does not see any longer that the elements of a vector are neighbours.
    """
    row = extent(sch, loops[-1])
    if row % width == 0 or row >= _LONG_ROW * width or len(loops) != len(view.spatial):
        return [*loops]
    most = contiguous_axes(view)
    whole = (n for n in range(1, most) if math.prod(view.spatial[-n:]) % width == 0)
    count = next(whole, most)
    return [*loops[:-count], fused(sch, loops[-count:])]


def _bits(view: BlockView, target: Target) -> int:
    """Bits of the elements by which a stage is vectorised: mostly of the widest that it computes.

    Before AVX-512, x86 narrows four vectors to a register of bytes in less time than each of them
    alone (`codegen/passes/byte_packs.py`).
    """
    makes_bytes = {str(one.source.dtype) for one in view.node.writes} <= {"uint8", "int8"}
    by_parts = architecture(target.triple) != "x86_64" or target.vector_bytes > _WITH_PACKS
    return BYTE if makes_bytes and not by_parts else view.bits


def _enough(sch: Any, loops: Sequence[Any], wanted: int) -> Sequence[Any]:
    """The outermost of nested loops that together have this many iterations, or all loops."""
    count = 1
    for number, loop in enumerate(loops, start=1):
        count *= extent(sch, loop)
        if count >= wanted:
            return loops[:number]
    return loops


def reduced_in_lanes(sch: Any, block: Any, vectors: int, target: Target) -> Any:
    """Let lowering keep a partial result in each lane of `vectors` registers, for any row length.

    In rows shorter than a register, the lanes are the widest power of two that fits. The reduction
    must already be where it is computed. Returns the block that initialises it.
    """
    reducing = len(BlockView(sch, block).reduced)
    loops = sch.get_loops(block)
    width = min(lanes(target), 1 << extent(sch, loops[-1]).bit_length() - 1)
    kept_in_lanes(sch, loops[-1], vectors, width)
    return sch.decompose_reduction(block, loops[-reducing])


def inline_producers(sch: Any, block: Any) -> None:
    """Inline the cheap elementwise stages before a block into it.

    Blocks are visited from the output backwards, so a rule that moves a block runs before any rule
    is asked about the block's producers.
    """
    for producer, name in [(one, one.name) for one in BlockView(sch, block).producers]:
        if not _is_there(sch, name):  # inlined as the producer of another
            continue
        inline_producers(sch, producer.rv)
        if not producer.stays:
            with suppress(tvm.s_tir.ScheduleError):
                sch.compute_inline(producer.rv)


def _is_there(sch: Any, name: str) -> bool:
    """Whether a block is still in the program.

    TVM's schedule would raise an error, of which the first takes a fifth of a second.
    """
    return any(one.name_hint == name for one in collect(sch.mod["main"].body, tvm.s_tir.SBlock))
