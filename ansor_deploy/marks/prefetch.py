"""Prefetch the next panel of weights while this one is used; or the rows of the next tile.

    for p: for i in range(n) (marked): for k: acc[..] += a[i, k] * packed[p, k]
    -->
    for p: for i in range(n): for k: fetch packed[p + 1, i / n + ..]; acc[..] += ..

The first tile of rows reads a panel from memory, the others read it from the cache. With few rows,
the first would wait for as long as all tiles compute. Each tile therefore prefetches a share of the
next panel, spread over its steps. In the same way each tile of rows prefetches the next tile's
rows, where few panels stay in the cache. Prefetching beyond the last panel or row does nothing.
"""

import math
from typing import Any

from .._lazy_tvm import collect, structural_map, tirx, tvm, uses
from ..system.checks import INT32, integer
from . import Mark, Place
from .long_dot import LONG_DOT
from .matrix_tiles import MATRIX

# Annotation of a loop over tiles of rows: elements of a panel to prefetch.
PREFETCH = "ansor.prefetch"
# Annotation of a loop over tiles of rows: elements of a tile's rows to prefetch.
PREFETCH_ROWS = "ansor.prefetch_rows"
# Bytes of a line of the cache, which a prefetch brings.
LINE = 64
# Most lines that a step may prefetch; a mark that needs more does not describe a panel.
MOST_LINES = 64
# Tiles that prefetch a panel where a run decides how many there are.
FEW_TILES = 3
# Arguments of `llvm.prefetch`: to read, into the second cache, data.
_HOW = (0, 2, 1)


def prefetching(sch: Any, loop: Any, elements: int) -> None:
    """Let a loop over tiles of rows prefetch the next panel, which has this many elements."""
    sch.annotate(loop, PREFETCH, elements)


def prefetching_rows(sch: Any, loop: Any, elements: int) -> None:
    """Let a loop over tiles of rows prefetch the next tile's rows, with this many elements."""
    sch.annotate(loop, PREFETCH_ROWS, elements)


def prefetch(func: Any) -> Any:
    """The function with prefetches in its marked loops. Its buffers must be flat."""
    return func.with_body(structural_map(func.body, (tirx.For, _fetching)))


def _fetching(tiles: Any) -> Any:
    found = tiles.annotations or {}
    for mark in (PREFETCH, PREFETCH_ROWS):
        if mark in found:
            return _fetching_ahead(tiles, int(found[mark]), mark)
    return tiles


def _fetching_ahead(tiles: Any, elements: int, mark: str) -> Any:
    steps, panels = _steps(tiles.body), mark == PREFETCH
    made = {store.buffer for store in collect(tiles.body, tirx.BufferStore)}
    source = _source(steps[-1], panels, made) if steps else None
    if source is None:
        return with_body(tiles, tiles.body, mark)
    inner = [loop.loop_var for loop in [*steps, *collect(steps[-1].body, tirx.For)]]
    start = at_zero(source.indices[0], inner) + elements
    fetches = _fetches([tiles, *steps] if panels else steps, start, source.source, elements)

    def begun(loop: Any) -> Any:
        if not fetches or not loop.same_as(steps[-1]):
            return loop
        return _with(loop, tirx.SeqStmt([*fetches, loop.body]), loop.annotations)

    return with_body(tiles, structural_map(tiles.body, (tirx.For, begun)), mark)


def _steps(body: Any) -> list[Any]:
    """The serial loops of the reduction, outermost first; without those within matrices."""
    loops = collect(body, tirx.For)
    matrices = [loop for loop in loops if MATRIX in (loop.annotations or {})]
    serial = _around(loops, matrices[0]) if matrices else loops
    serial = [loop for loop in serial if loop.kind == tirx.ForKind.SERIAL]
    if not serial:
        return []
    inner = max(serial, key=_size)
    around = [o for o in serial if any(one.same_as(inner) for one in collect(o.body, tirx.For))]
    return [*around[::-1], inner]


def _size(loop: Any) -> int:
    """Elements that a step computes where it has no serial loop; 0 where it has one.

    In a range, a whole tile is beside smaller ones for the last rows (`lengths/small_tiles.py`).
    """
    inside = collect(loop.body, tirx.For)
    if any(one.kind == tirx.ForKind.SERIAL for one in inside):
        return 0
    return math.prod(int(one.extent) for one in inside if isinstance(one.extent, tirx.IntImm))


def _around(loops: list[Any], matrix: Any) -> list[Any]:
    """The loops around a matrix over steps of its sums, not over its rows and columns."""
    (store,) = collect(matrix, tirx.BufferStore)
    having = [one for one in loops if any(o.same_as(matrix) for o in collect(one.body, tirx.For))]
    return [one for one in having if not uses(store.indices[0], one.loop_var)]


def _source(loop: Any, panels: bool, made: set[Any]) -> Any:
    """The load of an operand: the one along columns for panels, the other one for rows.

    made: buffers that the tiles fill. Loads from these that serve as indices are no operands.
    """
    columns = [one.loop_var for one in collect(loop.body, tirx.For) if _is_of_columns(one)]
    stored = [store.buffer for store in collect(loop.body, tirx.BufferStore)]
    loads = collect(loop.body, tvm.ir.TensorLoad)
    stored += [one for one in places(loads) if one in made]
    for load in loads:
        along = any(uses(load.indices[0], column) for column in columns)
        if along == panels and not any(load.source.same_as(one) for one in stored):
            return load
    return None


def places(loads: list[Any]) -> list[Any]:
    """The buffers that indices of these loads are read from."""
    indices = [index for load in loads for index in load.indices]
    return [one.source for index in indices for one in collect(index, tvm.ir.TensorLoad)]


def _is_of_columns(loop: Any) -> bool:
    """Whether a loop is over lanes, or around one whose steps are in lanes or in a matrix."""
    found = loop.body.annotations or {} if isinstance(loop.body, tirx.For) else {}
    return LONG_DOT in found or MATRIX in found or loop.kind == tirx.ForKind.VECTORIZED


def _fetches(loops: list[Any], start: Any, buffer: Any, elements: int) -> list[Any]:
    """The prefetches of one step: each step of these loops prefetches equally many lines."""
    step, count = tirx.const(0, start.ty.dtype), 1
    for loop in loops:
        at, steps = _spread(loop)
        step, count = step * steps + at, count * steps
    lines = math.ceil(elements / count * buffer.dtype.itemsize / LINE)
    if lines > MOST_LINES:
        return []
    # Prefetching a line twice costs less than prefetching lines that are not needed yet.
    apart = math.ceil(elements / (count * lines))
    first = start + step * (lines * apart)
    return [fetch(buffer, first + number * apart) for number in range(lines)]


def _spread(loop: Any) -> tuple[Any, int]:
    """The number of a step among those that prefetch something new, and how many these are.

    They are few where a run decides how many steps there are.
    """
    asked = [one.condition for one in collect(loop.body, tirx.IfThenElse)]
    decided = any(uses(one, loop.loop_var) and collect(one, tvm.ir.TensorLoad) for one in asked)
    if not decided or int(loop.extent) <= FEW_TILES:
        return loop.loop_var, int(loop.extent)
    return tirx.min(loop.loop_var, tirx.const(FEW_TILES - 1, loop.loop_var.ty.dtype)), FEW_TILES


def fetch(buffer: Any, index: Any) -> Any:
    """The statement that prefetches an element into the second cache."""
    address = tirx.address_of(tirx.BufferLoad(buffer, [index]))
    how = [tirx.const(value, "int32") for value in _HOW]
    return tirx.Evaluate(tirx.call_llvm_intrin("void", "llvm.prefetch", address, *how))


def at_zero(index: Any, variables: list[Any]) -> Any:
    """An index, or a statement, at the first step of the loops with these variables."""

    def zero(var: Any) -> Any:
        return tirx.const(0, var.ty.dtype) if any(var.same_as(v) for v in variables) else var

    return structural_map(index, (tirx.Var, zero))


def ranges(func: Any) -> Any:
    """An analyzer that knows the range of each loop of a function."""
    known = tvm.sym.Analyzer()
    for loop in collect(func.body, tirx.For):
        known.bind(loop.loop_var, tvm.ir.Range.from_min_extent(loop.min, loop.extent))
    return known


def with_body(loop: Any, body: Any, mark: str) -> Any:
    """The loop without this mark, around another body."""
    kept = {key: value for key, value in (loop.annotations or {}).items() if key != mark}
    return _with(loop, body, kept)


def _with(loop: Any, body: Any, kept: Any) -> Any:
    binding = loop.thread_binding
    return tirx.For(
        loop.loop_var, loop.min, loop.extent, loop.kind, body, binding, kept, loop.step, loop.span
    )


_elements = integer(1, INT32)
MARK = Mark(
    {PREFETCH: _elements, PREFETCH_ROWS: _elements},
    Place.STEPS,
    prefetch,
    verbs=("prefetching", "prefetching_rows"),
)
