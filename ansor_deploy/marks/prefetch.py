"""Prefetch the next panel of weights while this one is used; or the rows of the next tile.

    for p: for i in range(n) (marked): for k: acc[..] += a[i, k] * packed[p, k]
    -->
    for p: for i in range(n): for k: fetch packed[p + 1, i / n + ..]; acc[..] += ..

The first tile of rows reads a panel from memory, the others read it from the cache. With few rows,
the first would wait for as long as all tiles compute. Each tile therefore prefetches a share of the
next panel, spread over its steps. In the same way each tile of rows prefetches the next tile's
rows, where few panels stay in the cache. Prefetching beyond the last panel or row does nothing.

Where a run decides how many tiles are computed (`codegen/lengths/`), a share is that part of the
panel. Small tiles, with few multiply-adds a step, keep the share that they have of all tiles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .._lazy_tvm import at_step, collect, conjuncts, structural_map, tirx, tvm, uses
from ..system.checks import INT32, integer
from . import Mark, Place
from .long_dot import LONG_DOT

# Annotation of a loop over tiles of rows: elements of a panel to prefetch.
PREFETCH = "ansor.prefetch"
# Annotation of a loop over tiles of rows: elements of a tile's rows to prefetch.
PREFETCH_ROWS = "ansor.prefetch_rows"
# Bytes of a line of the cache, which a prefetch brings.
LINE = 64
# Most lines that a step may prefetch; a mark that needs more does not describe a panel.
MOST_LINES = 64
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
    panels, share = mark == PREFETCH, None
    found = _operands(tiles.body, panels)
    if panels and found:
        share = _Share.of(tiles, *found[0], elements)
    most = max((_written_out(at) for at, _ in found), default=0)
    fetches = {}
    for at, load in found:
        own = share if _written_out(at) == most else None
        fetches[at.loop_var] = _of_step(tiles, at, load, elements, own, panels)

    def begun(loop: Any) -> Any:
        if not (before := fetches.get(loop.loop_var)):
            return loop
        return _with(loop, tirx.SeqStmt([*before, loop.body]), loop.annotations)

    body = structural_map(tiles.body, (tirx.For, begun))
    return with_body(tiles, share.bound(body) if share else body, mark)


def _of_step(
    tiles: Any, inner: Any, load: Any, elements: int, share: _Share | None, panels: bool
) -> list[Any]:
    """The prefetches of each step of an innermost loop."""
    steps = _steps(tiles.body, inner)
    variables = [loop.loop_var for loop in [*steps, *collect(inner.body, tirx.For)]]
    start = at_zero(load.indices[0], variables) + elements
    if share:
        return share.fetches([tiles, *steps], load, start)
    return _fetches([tiles, *steps] if panels else steps, start, load.source, elements)


def _operands(body: Any, panels: bool) -> list[tuple[Any, Any]]:
    """The innermost loops of the reduction, with the load of the operand to prefetch.

    Tiles of each size have such a loop of their own.
    """
    made = {store.buffer for store in collect(body, tirx.BufferStore)}
    inner = [one for one in _serial(body) if not _serial(one.body)]
    loads = [_source(one, panels, made) for one in inner]
    source = loads[0].source if loads and loads[0] is not None else None
    pairs = zip(inner, loads, strict=True)
    return [(one, load) for one, load in pairs if load is not None and load.source.same_as(source)]


def _serial(body: Any) -> list[Any]:
    """The serial loops of a statement, but not those that only prefetch."""
    found = [loop for loop in collect(body, tirx.For) if loop.kind == tirx.ForKind.SERIAL]
    return [one for one in found if collect(one.body, tirx.BufferStore)]


def _steps(body: Any, inner: Any) -> list[Any]:
    """The serial loops around an innermost one, outermost first, and that one."""
    serial = _serial(body)
    around = [o for o in serial if any(one.same_as(inner) for one in collect(o.body, tirx.For))]
    return [*around[::-1], inner]


def _written_out(inner: Any) -> int:
    """How many statements the unrolled loops of a step become."""
    unrolled = [one for one in collect(inner.body, tirx.For) if one.kind == tirx.ForKind.UNROLLED]
    return math.prod(int(one.extent) for one in unrolled)


def _moving(steps: list[Any], load: Any) -> list[Any]:
    """The loops along which a load moves."""
    return [loop for loop in steps if uses(load.indices[0], loop.loop_var)]


@dataclass(frozen=True)
class _Share:
    """What each step prefetches of a panel, where a run decides how many tiles are computed.

    whole: the lines of a panel. each: a variable, the lines of a step. value: its value.
    """

    whole: int
    each: Any
    value: Any

    @classmethod
    def of(cls, tiles: Any, inner: Any, load: Any, elements: int) -> _Share | None:
        """The share of the steps of these tiles; None where all tiles are computed."""
        _, steps = _numbered(_moving(_steps(tiles.body, inner), load), "int64")
        whole = math.ceil(elements * load.source.dtype.itemsize / LINE)
        if (running := _running(tiles)) is None or whole > MOST_LINES * steps:
            return None
        dtype = str(load.indices[0].ty.dtype)
        each = tirx.Div(running * steps + (whole - 1), running * steps)
        return cls(whole, tirx.Var("share", dtype), tirx.Cast(dtype, each))

    def bound(self, body: Any) -> Any:
        """The body of a loop over tiles, in which computed tiles have the variable's value."""
        if isinstance(body, tirx.SeqStmt):
            return tirx.SeqStmt(list(map(self.bound, body.seq)))
        if not isinstance(body, tirx.IfThenElse):
            return body
        inside = tirx.SeqStmt([tirx.Bind(self.each, self.value), body.then_case])
        return tirx.IfThenElse(body.condition, inside, body.else_case)

    def fetches(self, loops: list[Any], load: Any, start: Any) -> list[Any]:
        """The prefetches of one step of these loops, until the panel ends."""
        dtype, apart = str(start.ty.dtype), LINE // load.source.dtype.itemsize
        step, _ = _numbered(loops, dtype)
        line, first = tirx.Var("line", dtype), step * self.each
        one = fetch(load.source, start + (first + line) * apart)
        most = tirx.Min(self.each, self.whole - first)
        return [tirx.For(line, tirx.const(0, dtype), most, tirx.ForKind.SERIAL, one)]


def _running(tiles: Any) -> Any:
    """How many tiles are computed, where each asks whether its first row counts; else None."""
    body = tiles.body
    every = body.seq if isinstance(body, tirx.SeqStmt) else [body]
    guards = [one for one in every if isinstance(one, tirx.IfThenElse)]
    asked = conjuncts(guards[0].condition) if len(guards) == 1 else []
    ends = (_end(one, tiles) for one in asked if isinstance(one, tirx.LT))
    return next((one for one in ends if one is not None), None)


def _end(condition: Any, tiles: Any) -> Any:
    """The number of tiles, at least one, that are `size * tile + first < count`; else None."""
    known, count = tvm.sym.Analyzer(), condition.b
    at = [known.simplify(at_step(condition.a, tiles, step)) for step in range(3)]
    if uses(count, tiles.loop_var) or not all(isinstance(one, tirx.IntImm) for one in at):
        return None
    first, second, third = map(int, at)
    if (size := second - first) < 1 or third - second != size:
        return None
    one, most, each = (tirx.const(n, "int64") for n in (1, int(tiles.extent), size))
    ended = tirx.Div(tirx.Cast("int64", count) + (size - 1 - first), each)
    return tirx.Max(tirx.Min(ended, most), one)


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
    """Whether a loop is over lanes, or around a loop whose steps are in lanes."""
    within = isinstance(loop.body, tirx.For) and LONG_DOT in (loop.body.annotations or {})
    return within or loop.kind == tirx.ForKind.VECTORIZED


def _fetches(loops: list[Any], start: Any, buffer: Any, elements: int) -> list[Any]:
    """The prefetches of one step: each step of these loops prefetches equally many lines."""
    step, count = _numbered(loops, start.ty.dtype)
    lines = math.ceil(elements / count * buffer.dtype.itemsize / LINE)
    if lines > MOST_LINES:
        return []
    # Prefetching a line twice costs less than prefetching lines that are not needed yet.
    apart = math.ceil(elements / (count * lines))
    first = start + step * (lines * apart)
    return [fetch(buffer, first + number * apart) for number in range(lines)]


def _numbered(loops: list[Any], dtype: Any) -> tuple[Any, int]:
    """The number of a step of nested loops, and how many steps there are."""
    step, count = tirx.const(0, dtype), 1
    for loop in loops:
        step, count = step * loop.extent + loop.loop_var, count * int(loop.extent)
    return step, count


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
