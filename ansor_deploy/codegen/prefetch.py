"""The next panel of weights, fetched while the rows of a result pass by this one.

    for p: for i in range(n) (marked): for k: acc[..] += a[i, k] * packed[p, k]
    -->
    for p: for i in range(n): for k: fetch packed[p + 1, i / n + ..]; acc[..] += ..

The first tile of rows reads a panel from memory, the others from the cache. Of few rows, the first
would wait for as long as all compute. So each tile fetches a share of the next panel, spread over
its steps. Fetching beyond the last panel does nothing.
"""

import math
from typing import Any

from .._tvm import collect, structural_map, tirx, tvm
from ..space.block_view import uses

# A rule's mark of a loop over tiles of rows, with the elements of a panel (`space/loops.py`).
MARK = "ansor.prefetch"
# Bytes that a fetch brings.
LINE = 64
# Most lines that a step may fetch: more is no panel that its tiles read.
MOST_LINES = 64
# Of `llvm.prefetch`: to read, into the second cache, data.
_HOW = (0, 2, 1)


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.Prefetch")
def prefetch(func: Any, _mod: Any, _context: Any) -> Any:
    """The function, with fetches in its marked loops. Its buffers have been flattened."""
    return func.with_body(structural_map(func.body, (tirx.For, _fetching)))


def _fetching(tiles: Any) -> Any:
    if (panel := (tiles.annotations or {}).get(MARK)) is None:
        return tiles
    steps = _steps(tiles.body)
    source = _source(steps[-1]) if steps else None
    fetches = _fetches(tiles, steps, source, int(panel)) if source is not None else []

    def begun(loop: Any) -> Any:
        if not loop.same_as(steps[-1]):
            return loop
        return _with_body(loop, tirx.SeqStmt([*fetches, loop.body]))

    return _with_body(tiles, structural_map(tiles.body, (tirx.For, begun))) if fetches else tiles


def _steps(body: Any) -> list[Any]:
    """The serial loops of the reduction, outermost first."""
    serial = [loop for loop in collect(body, tirx.For) if loop.kind == tirx.ForKind.SERIAL]
    if not serial:
        return []
    inner, *others = serial
    around = [o for o in others if any(one.same_as(inner) for one in collect(o.body, tirx.For))]
    return [*around[::-1], inner]


def _source(loop: Any) -> Any:
    """The load of the packed operand: along lanes, and not of what is summed up."""
    inside = collect(loop.body, tirx.For)
    lanes = [one.loop_var for one in inside if one.kind == tirx.ForKind.VECTORIZED]
    stored = [store.buffer for store in collect(loop.body, tirx.BufferStore)]
    for load in collect(loop.body, tvm.ir.TensorLoad):
        along = any(uses(load.indices[0], lane) for lane in lanes)
        if along and not any(load.source.same_as(one) for one in stored):
            return load
    return None


def _fetches(tiles: Any, steps: list[Any], source: Any, panel: int) -> list[Any]:
    """The statements of one step: as many lines as all steps of all tiles must fetch each."""
    inner = [*steps, *collect(steps[-1].body, tirx.For)]
    start = _at_zero(source.indices[0], [loop.loop_var for loop in inner])
    step, count = tiles.loop_var, int(tiles.extent)
    for loop in steps:
        step, count = step * loop.extent + loop.loop_var, count * int(loop.extent)
    lines = math.ceil(panel / count * source.source.dtype.itemsize / LINE)
    if lines > MOST_LINES:
        return []
    # Fetching a line twice costs less than fetching some that are not wanted yet.
    apart = math.ceil(panel / (count * lines))
    first = start + panel + step * (lines * apart)
    return [_fetch(source.source, first + number * apart) for number in range(lines)]


def _fetch(buffer: Any, index: Any) -> Any:
    address = tirx.address_of(tirx.BufferLoad(buffer, [index]))
    how = [tirx.const(value, "int32") for value in _HOW]
    return tirx.Evaluate(tirx.call_llvm_intrin("void", "llvm.prefetch", address, *how))


def _at_zero(index: Any, variables: list[Any]) -> Any:
    """An index where these loops begin."""

    def zero(var: Any) -> Any:
        return tirx.const(0, var.ty.dtype) if any(var.same_as(v) for v in variables) else var

    return structural_map(index, (tirx.Var, zero))


def _with_body(loop: Any, body: Any) -> Any:
    """The loop, no longer marked, around another body."""
    kept = {key: value for key, value in (loop.annotations or {}).items() if key != MARK}
    binding = loop.thread_binding
    return tirx.For(
        loop.loop_var, loop.min, loop.extent, loop.kind, body, binding, kept, loop.step, loop.span
    )
