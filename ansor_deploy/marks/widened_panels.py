"""Short weights are widened once for all tiles of rows that multiply by them.

    for i in range(n) (marked): for k: acc[..] += a[i, k] * float32(packed[p, k, ..])
    -->
    for i in range(n):
        if i == 0: for k: panel[k, ..] = float32(packed[p, k, ..]) ; acc[..] += .. * panel[k, ..]
        else: for k: acc[..] += a[i, k] * panel[k, ..]

Weights of 16 bits, or bytes with a scale, become float32. Bytes that are multiplied by rows of 16
bits become 16 bits, all steps of a vector's columns at once.

Converting a vector of weights takes as long as some multiply-adds, and each tile of rows would do
it again. The converted panel stays in a cache, like one of float32 weights, and less data comes
from memory. The first tile converts it step by step while it computes: as a separate pass, the
conversion would take as long as a tile. Where cores share the tiles, none is the first, and the
whole panel is converted before them, in parallel.
"""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass
from typing import Any

from .._lazy_tvm import collect, structural_equal, structural_map, tirx, tvm, uses
from ..system.checks import flag
from . import Mark, Place
from .partition import undivided
from .prefetch import at_zero, ranges, with_body

# Annotation of a loop over tiles of rows.
WIDENED = "ansor.widened"
# Types that become float32 without a scale.
HALVES = ("float16", "bfloat16")


def widening(sch: Any, loop: Any) -> None:
    """Let a loop over tiles widen short weights once, for all its tiles."""
    sch.annotate(loop, WIDENED, True)


def widened_panels(func: Any) -> Any:
    """The function with widened panels in its marked loops. Its buffers must be flat."""
    known = ranges(func)

    def widened(stmt: Any) -> Any:
        # Another mark may be a statement around the loop, and must stay there.
        loop = stmt.body if isinstance(stmt, tirx.AttrStmt) else stmt
        if not isinstance(loop, tirx.For) or WIDENED not in (loop.annotations or {}):
            return stmt
        return _with_panels(structural_map(stmt, (tirx.For, _unmarked)), loop, known)

    found = structural_map(func.body, ((tirx.AttrStmt, tirx.For), widened), order="pre")
    return func.with_body(found)


def _unmarked(loop: Any) -> Any:
    return with_body(loop, loop.body, WIDENED)


def _with_panels(stmt: Any, loop: Any, known: Any) -> Any:
    """The statement of a loop, with a panel for each short buffer that it multiplies by."""
    factors = [one for product in collect(loop.body, tirx.Mul) for one in (product.a, product.b)]
    pairs = [(one, load) for one in factors if (load := _short(one)) is not None]
    for value, load in pairs:
        alone = sum(load.source.same_as(other.source) for _, other in pairs) == 1
        panel = _Panel.of(value, load, loop, known) if alone else None
        stmt = panel.made_for(stmt) if panel is not None else stmt
    return stmt


def _short(value: Any) -> Any:
    """The load of fewer than 32 bits that an expression converts to 32; None for another one.

    Bytes of blockwise weights, less any zero point, are also multiplied by their block's scale.
    """
    if isinstance(value, tirx.Cast) and str(value.ty.dtype) == "int32":
        loaded = value.value
        bytes_ = isinstance(loaded, tvm.ir.TensorLoad) and str(loaded.ty.dtype) == "int8"
        return loaded if bytes_ else None
    if isinstance(value, tirx.Mul) and isinstance(value.b, tvm.ir.TensorLoad):
        step = value.a.a if isinstance(value.a, tirx.Sub) else value.a
        loaded = step.value if isinstance(step, tirx.Cast) else None
        bytes_ = isinstance(loaded, tvm.ir.TensorLoad) and str(loaded.ty.dtype) == "int8"
        return loaded if bytes_ and str(value.ty.dtype) == "float32" else None
    loads = [one for one in collect(value, tvm.ir.TensorLoad) if str(one.ty.dtype) in HALVES]
    return loads[0] if len(loads) == 1 and structural_equal(value, _float32(loads[0])) else None


def _float32(load: Any) -> Any:
    """A 16-bit load as float32, in lowering's form: a bfloat16 is the upper half of a float32."""
    if str(load.ty.dtype) == "float16":
        return tirx.Cast("float32", load)
    bits = tirx.Cast("uint32", tirx.reinterpret("uint16", load))
    return tirx.reinterpret("float32", tirx.shift_left(bits, tirx.const(16, "uint32")))


def _first(tiles: list[Any]) -> Any:
    """The condition that loops over tiles are at the first tile."""
    at, first = (
        functools.reduce(operator.add, places)
        for places in ([one.loop_var for one in tiles], [one.min for one in tiles])
    )
    return undivided(tirx.EQ(at, first))


@dataclass(frozen=True)
class _Panel:
    """The elements that a load reads in nested loops, and the panel that they become.

    value: an element of the panel, as it is made of the load. loops: the innermost first; the
    marked one is last. start: the first element that is read. buffer: the panel. known: the ranges
    of all loops.
    """

    value: Any
    load: Any
    loops: list[Any]
    start: Any
    buffer: Any
    known: Any

    @classmethod
    def of(cls, value: Any, load: Any, loop: Any, known: Any) -> _Panel | None:
        """The panel of a load in a marked loop; None where it might read beyond its buffer."""
        (index,), whole = load.indices, math.prod(map(int, load.source.shape))
        loops = collect(loop, tirx.For)
        start = at_zero(index, [one.loop_var for one in loops])
        read = known.const_int_bound(known.simplify(index - start))
        if read.min_value != 0 or known.const_int_bound(index).max_value >= whole:
            return None
        around = [one for one in loops if any(load.same_as(o) for o in collect(one, type(load)))]
        if any(uses(value, one.loop_var) and not uses(index, one.loop_var) for one in around):
            return None
        made = tirx.Cast("int16", load) if str(value.ty.dtype) == "int32" else value
        buffer = tirx.decl_buffer((read.max_value + 1,), str(made.ty.dtype), "panel")
        return cls(made, load, around, start, buffer, known)

    def made_for(self, stmt: Any) -> Any:
        """The marked loop's statement, with the panel converted before it or by the first tile."""
        allocated, tiles = tirx.AllocBuffer(self.buffer), self._tiles()
        if (steps := self._steps(tiles)) is None:
            return tirx.SeqStmt([allocated, self._made_before(), self._reading(stmt)])
        inside = self.loops[: self.loops.index(steps) + 1]

        def by_the_first(loop: Any) -> Any:
            if not loop.loop_var.same_as(steps.loop_var):
                return loop
            return tirx.IfThenElse(_first(tiles), self._making(loop, inside), self._reading(loop))

        return tirx.SeqStmt([allocated, structural_map(stmt, (tirx.For, by_the_first))])

    def _tiles(self) -> list[Any]:
        """The serial loops over tiles that read the same elements, the innermost first."""
        serial = [one for one in self.loops if one.kind == tirx.ForKind.SERIAL]
        return [one for one in serial if not self._moves_with(one)]

    def _steps(self, tiles: list[Any]) -> Any:
        """The outermost loop over a tile's steps.

        None where tiles are parallel tasks, or a tile may leave out steps, or the loop is unrolled:
        LLVM would then keep the whole panel in registers.
        """
        *_, marked = self.loops
        leaves_out = any(collect(one, tirx.For) for one in collect(marked.body, tirx.IfThenElse))
        if not tiles or leaves_out or marked.kind != tirx.ForKind.SERIAL:
            return None
        steps = self.loops[max(0, self.loops.index(tiles[0]) - 1)]
        return steps if steps.kind == tirx.ForKind.SERIAL and steps not in tiles else None

    def _made_before(self) -> Any:
        """The statement that converts the whole panel, in parallel before a parallel loop."""
        made = self._made(self.loops, tirx.ForKind.SERIAL)
        tasks = self.loops[-1].kind == tirx.ForKind.PARALLEL and isinstance(made, tirx.For)
        return _of_kind(made, tirx.ForKind.PARALLEL, made.body) if tasks else made

    def _moves_with(self, loop: Any) -> bool:
        return uses(self.load.indices[0], loop.loop_var)

    def _making(self, steps: Any, inside: list[Any]) -> Any:
        """All steps of a tile; each converts the elements that its rows read first.

        inside: the loops of these steps.
        """
        row = next((one for one in reversed(inside) if not self._moves_with(one)), inside[0])
        made = self._made(inside[: inside.index(row) + 1], tirx.ForKind.UNROLLED)

        def after(loop: Any) -> Any:
            return tirx.SeqStmt([made, loop]) if loop.loop_var.same_as(row.loop_var) else loop

        return structural_map(self._reading(steps), (tirx.For, after))

    def _reading(self, stmt: Any) -> Any:
        """A statement with the panel in place of the load."""
        place = [self._place(self.load.indices[0])]

        def read(value: Any) -> Any:
            load = _short(value)
            if load is None or not load.same_as(self.load):
                return value
            found, kind = tirx.BufferLoad(self.buffer, place), str(value.ty.dtype)
            return found if kind == self.buffer.dtype else tirx.Cast(kind, found)

        return structural_map(stmt, ((tirx.Cast, tirx.Mul, tvm.ir.Call), read))

    def _made(self, loops: list[Any], kind: Any) -> Any:
        """The statement that converts what is read in these loops.

        kind: the kind of the loops that are not over vectors.
        """
        place = self._place(self.load.indices[0])
        made = tirx.BufferStore(self.buffer, self.value, [place])
        loops = [one for one in loops if self._moves_with(one)]
        made, loops = self._side_by_side(made, loops)
        for loop in loops:
            vectors = loop.kind == tirx.ForKind.VECTORIZED
            made = _of_kind(loop, loop.kind if vectors else kind, made)
        return made

    def _side_by_side(self, made: Any, loops: list[Any]) -> tuple[Any, list[Any]]:
        """A store and its loops, with those over lanes and over the steps between them as one.

        Nothing changes where lanes are neighbours themselves.
        """
        lanes = next((one for one in loops if one.kind == tirx.ForKind.VECTORIZED), None)
        apart = 1 if lanes is None else self._stride(lanes)
        beside = (one for one in loops if self._stride(one) == 1 and int(one.extent) == apart)
        steps = next(beside, None) if apart > 1 else None
        if steps is None:
            return made, loops
        stored, both = _contiguous(made, lanes, steps)
        return stored, [both, *(one for one in loops if one not in (lanes, steps))]

    def _stride(self, loop: Any) -> int:
        """How many elements the load moves in a step of a loop; 0 where that is not constant."""
        (index,), var = self.load.indices, loop.loop_var
        moved = structural_map(index, (tirx.Var, lambda one: one + 1 if one.same_as(var) else one))
        found = self.known.simplify(moved - index)
        return int(found.value) if isinstance(found, tirx.IntImm) else 0

    def _place(self, index: Any) -> Any:
        """The index in the panel of an element of the source."""
        return self.known.simplify(index - self.start)


def _contiguous(store: Any, lanes: Any, steps: Any) -> tuple[Any, Any]:
    """A store, and one loop over its contiguous elements in place of two. steps: of each lane."""
    known, count = tvm.sym.Analyzer(), lanes.extent * steps.extent
    at = tirx.Var("lane", lanes.loop_var.ty.dtype)
    known.bind(at, tvm.ir.Range(0, count))
    places = {
        lanes.loop_var: at // steps.extent + lanes.min,
        steps.loop_var: at % steps.extent + steps.min,
    }

    def moved(node: Any) -> Any:
        return tirx.BufferLoad(node.source, list(map(known.simplify, node.indices)))

    put = (tirx.Var, lambda var: places.get(var, var))
    made = structural_map(structural_map(store, put), (tvm.ir.TensorLoad, moved))
    indices = list(map(known.simplify, made.indices))
    stored = tirx.BufferStore(made.buffer, made.value, indices)
    return stored, tirx.For(at, lanes.min * 0, count, lanes.kind, lanes.body)


def _of_kind(loop: Any, kind: Any, body: Any) -> Any:
    """A loop with the same steps around another body."""
    return tirx.For(loop.loop_var, loop.min, loop.extent, kind, body)


MARK = Mark({WIDENED: flag}, Place.BEFORE, widened_panels, verbs=("widening",))
