"""Tiles that are read along one axis and written along another are transposed in registers.

    for c in range(8) (marked): for r in range(8): y[.., c, r] = f(x[.., r, c])
    -->
    for r: a[r] = x[.., r, ..8] (a vector)
    for s = 4, 2, 1, for pairs of vectors a[i], a[i + s]: swap the lanes of the first whose number
        has the bit s with the lanes of the second whose number does not
    for c: for r (vector): y[.., c, r] = f(a[c, r])

Without this, each element is a load and a store of its own. A tile that an extent cuts short stays
as it is. So does one in which some elements are padding, since nothing may be read there.
"""

from typing import Any

from .._lazy_tvm import collect, op_name, structural_map, tirx, tvm, uses
from ..system.checks import flag
from . import Mark, Place

# Annotation of the outer of the two innermost loops over a square tile, along which it is read.
TURNED = "ansor.turned"
# Elements along each side of a tile.
SIDE = 8


def turned(sch: Any, column: Any, row: Any) -> tuple[Any, ...]:
    """Split two nested loops into tiles that lowering turns in registers. Returns the four loops.

    column: the loop along which elements are read. row: the one along which they are written.
    """
    (across, column), (down, row) = (sch.split(loop, [None, SIDE]) for loop in (column, row))
    sch.annotate(column, TURNED, True)
    return across, down, column, row


def turned_tiles(func: Any) -> Any:
    """The function with marked tiles turned in registers. Its buffers must be flat."""
    return func.with_body(structural_map(func.body, (tirx.For, _written_out)))


def _written_out(loop: Any) -> Any:
    if TURNED not in (loop.annotations or {}) or not isinstance(loop.body, tirx.For):
        return loop
    body, condition = loop.body.body, None
    if isinstance(body, tirx.IfThenElse) and body.else_case is None:
        body, condition = body.then_case, body.condition
    if not isinstance(body, tirx.BufferStore):
        return loop
    tile = _Tile(loop.loop_var, loop.body.loop_var, body)
    sides = (loop.extent, loop.body.extent)
    if tile.read is None or not all(getattr(side, "value", 0) == SIDE for side in sides):
        return loop
    if condition is None:
        return tile.turned()
    # Indices grow with both variables: where the last element is within extents, all are.
    return tirx.IfThenElse(tile.at(condition, SIDE - 1, SIDE - 1), tile.turned(), loop)


class _Tile:
    """The store of two loops. read: the load along the outer one; None if this is no such tile."""

    def __init__(self, column: Any, row: Any, store: Any) -> None:
        self._column, self._row, self._store = column, row, store
        loads = collect(store.value, tvm.ir.TensorLoad)
        along = [one for one in loads if self._steps(one.indices, column) == 1]
        along = [one for one in along if uses(one.indices[0], row) and not _is_guarded(one, store)]
        written = self._steps(store.indices, row) == 1
        self.read: Any = along[0] if len(along) == 1 and written else None

    def at(self, expr: Any, column: int, row: int) -> Any:
        """An expression for one element of the tile."""
        put = {self._column: column, self._row: row}
        put = {var: tirx.const(number, var.ty.dtype) for var, number in put.items()}
        return structural_map(expr, (tirx.Var, lambda var: put.get(var, var)))

    def turned(self) -> Any:
        """The statements for a whole tile."""
        dtype = str(self.read.ty.dtype)
        here, there = (tirx.decl_buffer((SIDE * SIDE,), dtype, "turned") for _ in range(2))
        steps = [tirx.AllocBuffer(here), tirx.AllocBuffer(there)]
        for row in range(SIDE):
            start = self.at(self.read.indices[0], 0, row)
            steps.append(_stored(here, row, _vector(self.read.source, start)))
        apart = SIDE // 2
        while apart:
            steps += _exchanged(here, there, apart)
            here, there, apart = there, here, apart // 2
        return tirx.SeqStmt([*steps, self._results(here)])

    def _results(self, buffer: Any) -> Any:
        """The loops that compute the results from the turned tile, and store them."""
        element = tirx.BufferLoad(buffer, [self._column * SIDE + self._row])
        swap = lambda load: element if load.same_as(self.read) else load  # noqa: E731
        value = structural_map(self._store.value, (tvm.ir.TensorLoad, swap))
        store = tirx.BufferStore(self._store.buffer, value, self._store.indices)
        lanes = tirx.For(self._row, 0, SIDE, tirx.ForKind.VECTORIZED, store)
        return tirx.For(self._column, 0, SIDE, tirx.ForKind.UNROLLED, lanes)

    def _steps(self, indices: Any, var: Any) -> int | None:
        """How far an index moves when a variable grows by one; None where that varies."""
        if len(indices) != 1:
            return None
        put = lambda one: one + 1 if one.same_as(var) else one  # noqa: E731
        ahead = structural_map(indices[0], (tirx.Var, put))
        step = tvm.sym.Analyzer().simplify(ahead - indices[0])
        return int(step.value) if isinstance(step, tirx.IntImm) else None


def _is_guarded(load: Any, store: Any) -> bool:
    """Whether a load is conditional, as in padding, where the tensor has no elements to read."""
    calls = collect(store.value, tvm.ir.Call)
    guards = [one for one in calls if op_name(one) == "prim.if_then_else"]
    return any(load.same_as(one) for guard in guards for one in collect(guard, tvm.ir.TensorLoad))


def _exchanged(here: Any, there: Any, apart: int) -> list[Any]:
    """Exchange blocks of lanes between pairs of vectors `apart` rows apart, into another buffer."""
    lanes, found = range(SIDE), []
    for one in (row for row in lanes if not row & apart):
        pair = [_vector(here, at * SIDE) for at in (one, one + apart)]
        first = [lane - apart + SIDE if lane & apart else lane for lane in lanes]
        second = [lane + SIDE if lane & apart else lane + apart for lane in lanes]
        for at, order in ((one, first), (one + apart, second)):
            mixed = tirx.Shuffle(pair, [tirx.IntImm("int32", lane) for lane in order])
            found.append(_stored(there, at, mixed))
    return found


def _vector(buffer: Any, start: Any) -> Any:
    return tirx.BufferLoad(buffer, [tirx.Ramp(_index(start), _index(1), SIDE)])


def _stored(buffer: Any, row: int, value: Any) -> Any:
    return tirx.BufferStore(buffer, value, [tirx.Ramp(_index(row * SIDE), _index(1), SIDE)])


def _index(value: Any) -> Any:
    return tirx.IntImm("int32", value) if isinstance(value, int) else value


MARK = Mark({TURNED: flag}, Place.LOOPS, turned_tiles, verbs=("SIDE", "turned"))
