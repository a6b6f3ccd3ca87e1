"""Tiles that are read along one axis and written along another are transposed in registers.

    for c in range(8) (marked): for r in range(8): y[.., c, r] = f(x[.., r, c])
    -->
    for r: a[r] = x[.., r, ..8] (a vector)
    for s = 4, 2, 1, for pairs of vectors a[i], a[i + s]: swap the lanes of the first whose number
        has the bit s with the lanes of the second whose number does not
    for c: for r (vector): y[.., c, r] = f(a[c, r])

Without this, each element is a load and a store of its own, and whatever is computed of it takes an
instruction of its own. Every operand that is read along that axis is turned; the others are read in
vectors, or are the same for all lanes. A tile that an extent cuts short stays as it is. So does one
in which some elements are padding, since nothing may be read there.

Where a tile lies in one part of a concatenation as a whole, it is asked once in which:

    y[.., c, r] = c < 64 ? a[.., r, c] : b[.., r, c - 64]
    -->
    if 8 * c_tile < 64: (the tile of a) else: (the tile of b)
"""

from typing import Any

from .._lazy_tvm import collect, op_name, structural_equal, structural_map, tirx, tvm, uses
from ..system.checks import flag
from . import Mark, Place

# Annotation of the outer of the two innermost loops over a square tile, along which it is read.
TURNED = "ansor.turned"
# Most choices in a value that are asked once for a tile, since each makes another tile.
_MOST_CHOICES = 8
# Bits of the registers in which all processors interleave the elements of two by one instruction.
_INTERLEAVED = 128
# Elements along each side of a tile.
SIDE = 8
# Elements along each side of a tile of bytes.
SIDE_OF_BYTES = 16


def turned(sch: Any, column: Any, row: Any, side: int = SIDE) -> tuple[Any, ...]:
    """Split two nested loops into tiles that lowering turns in registers. Returns the four loops.

    column: the loop along which elements are read. row: the one along which they are written. side:
    how many elements a tile has along each, a power of two.
    """
    (across, column), (down, row) = (sch.split(loop, [None, side]) for loop in (column, row))
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
    side = _side(loop)
    if not isinstance(body, tirx.BufferStore) or side is None:
        return loop
    tile = _Tile(loop.loop_var, loop.body.loop_var, side, body)
    if (turned := tile.turned()) is None:
        return loop
    if condition is None:
        return turned
    # Indices grow with both variables: where the last element is within extents, all are.
    return tirx.IfThenElse(tile.at(condition, side - 1, side - 1), turned, loop)


def _side(loop: Any) -> int | None:
    """How many iterations each of two loops has; None where that is no power of two."""
    one, other = (getattr(each.extent, "value", 0) for each in (loop, loop.body))
    return int(one) if one == other > 1 and not one & (one - 1) else None


class _Tile:
    """The store of two loops. reads: the different loads along the outer one."""

    def __init__(self, column: Any, row: Any, side: int, store: Any) -> None:
        self._column, self._row, self._side, self._store = column, row, side, store
        self.reads: list[Any] = []
        for load in collect(store.value, tvm.ir.TensorLoad):
            along = self._steps(load.indices, column) == 1 and uses(load.indices[0], row)
            if along and not any(structural_equal(load, one) for one in self.reads):
                self.reads.append(load)

    def at(self, expr: Any, column: int, row: int) -> Any:
        """An expression for one element of the tile."""
        put = {self._column: column, self._row: row}
        put = {var: tirx.const(number, var.ty.dtype) for var, number in put.items()}
        return structural_map(expr, (tirx.Var, lambda var: put.get(var, var)))

    def turned(self) -> Any:
        """The statements for a whole tile; None where it cannot be turned."""
        if self._steps(self._store.indices, self._row) != 1:
            return None
        if (choice := self._choice()) is not None:
            return self._chosen(choice)
        if not self.reads or any(_is_guarded(one, self._store) for one in self.reads):
            return None
        steps, results = list[Any](), list[Any]()
        for read in self.reads:
            made, result = self._of(read)
            steps += made
            results.append(result)
        return tirx.SeqStmt([*steps, self._results(results)])

    def _choice(self) -> Any:
        """A choice in the value that is the same for the whole tile; None without one."""
        calls = collect(self._store.value, tvm.ir.Call)
        found = [one for one in calls if op_name(one) == "prim.if_then_else"]
        if len(found) > _MOST_CHOICES:
            return None
        return next((one for one in found if self._is_uniform(one.args[0])), None)

    def _is_uniform(self, condition: Any) -> bool:
        """Whether a condition is the same for all elements of the tile.

        A comparison is, where the difference of both sides has one sign in the tile: that at its
        first element is a multiple of a number, more or less, and moves from there by known steps.
        """
        moving = (self._column, self._row)
        if not any(uses(condition, var) for var in moving):
            return True
        if not isinstance(condition, (tirx.LT, tirx.LE, tirx.GT, tirx.GE)):
            return False
        apart = condition.a - condition.b
        steps = [self._steps([apart], var) for var in moving]
        if None in steps:
            return False
        ends = [(self._side - 1) * (step or 0) for step in steps]
        least, most = (sum(pick(end, 0) for end in ends) for pick in (min, max))
        known = tvm.sym.Analyzer()
        first = known.modular_set(known.simplify(self.at(apart, 0, 0)))
        strict = isinstance(condition, (tirx.LT, tirx.GE))
        below, above = (-most, -least) if strict else (1 - most, 1 - least)
        return not any((one - first.base) % max(first.coeff, 1) == 0 for one in range(below, above))

    def _chosen(self, choice: Any) -> Any:
        """A statement for each value of the choice, of which a run takes one."""
        condition, *ways = choice.args
        made = []
        for way in ways:
            swap = lambda one, way=way: way if structural_equal(one, choice) else one  # noqa: E731
            value = structural_map(self._store.value, (tvm.ir.Call, swap))
            store = tirx.BufferStore(self._store.buffer, value, self._store.indices)
            tile = _Tile(self._column, self._row, self._side, store)
            made.append(tile.turned() or tile.plain())
        return tirx.IfThenElse(self.at(condition, 0, 0), *made)

    def plain(self) -> Any:
        """The loops over the tile as they were."""
        made = self._store
        for var in (self._row, self._column):
            made = tirx.For(var, 0, self._side, tirx.ForKind.SERIAL, made)
        return made

    def _of(self, read: Any) -> tuple[list[Any], Any]:
        """The statements that turn what a load reads, and the buffer with the result."""
        side, dtype = self._side, str(read.ty.dtype)
        here, there = (tirx.decl_buffer((side * side,), dtype, "turned") for _ in range(2))
        steps = [tirx.AllocBuffer(here), tirx.AllocBuffer(there)]
        for row in range(side):
            start = self.at(read.indices[0], 0, row)
            steps.append(_stored(here, row, _vector(read.source, start, side), side))
        interleaves = side * read.ty.dtype.bits <= _INTERLEAVED
        apart = side // 2
        while apart:
            mixed = _interleaved(side) if interleaves else _exchanged(apart, side)
            for row, (pair, order) in enumerate(mixed):
                vectors = [_vector(here, at * side, side) for at in pair]
                lanes = [tirx.IntImm("int32", lane) for lane in order]
                steps.append(_stored(there, row, tirx.Shuffle(vectors, lanes), side))
            here, there, apart = there, here, apart // 2
        return steps, here

    def _results(self, buffers: list[Any]) -> Any:
        """The loops that compute the results from the turned tiles, and store them."""
        place = [self._column * self._side + self._row]

        def swap(load: Any) -> Any:
            pairs = zip(self.reads, buffers, strict=True)
            found = (buffer for read, buffer in pairs if structural_equal(load, read))
            buffer = next(found, None)
            return load if buffer is None else tirx.BufferLoad(buffer, place)

        value = structural_map(self._store.value, (tvm.ir.TensorLoad, swap))
        store = tirx.BufferStore(self._store.buffer, value, self._store.indices)
        lanes = tirx.For(self._row, 0, self._side, tirx.ForKind.VECTORIZED, store)
        return tirx.For(self._column, 0, self._side, tirx.ForKind.UNROLLED, lanes)

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


# The two rows that a row is mixed of, and the order of their elements.
_Mixed = tuple[tuple[int, int], list[int]]


def _exchanged(apart: int, side: int) -> list[_Mixed]:
    """Rows after an exchange of blocks of lanes between pairs of them that are `apart` apart."""
    lanes = range(side)
    first = [lane - apart + side if lane & apart else lane for lane in lanes]
    second = [lane + side if lane & apart else lane + apart for lane in lanes]
    return [((row & ~apart, row | apart), second if row & apart else first) for row in lanes]


def _interleaved(side: int) -> list[_Mixed]:
    """Rows after each row of the first half was interleaved with one of the second."""
    half, mixed = side // 2, [lane for at in range(side) for lane in (at, at + side)]
    pairs = [(row, row + half) for row in range(half)]
    return [(pair, part) for pair in pairs for part in (mixed[:side], mixed[side:])]


def _vector(buffer: Any, start: Any, side: int) -> Any:
    return tirx.BufferLoad(buffer, [tirx.Ramp(_index(start), _index(1), side)])


def _stored(buffer: Any, row: int, value: Any, side: int) -> Any:
    return tirx.BufferStore(buffer, value, [tirx.Ramp(_index(row * side), _index(1), side)])


def _index(value: Any) -> Any:
    return tirx.IntImm("int32", value) if isinstance(value, int) else value


MARK = Mark({TURNED: flag}, Place.LOOPS, turned_tiles, verbs=("SIDE", "SIDE_OF_BYTES", "turned"))
