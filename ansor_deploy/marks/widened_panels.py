"""Weights of 16 bits, made float32 once for all tiles of rows that multiply by them.

    for i in range(n) (marked): for k: acc[..] += a[i, k] * float32(packed[p, k, ..])
    -->
    for i in range(n): for k:
        if i == 0: panel[k, ..] = float32(packed[p, k, ..])
        acc[..] += a[i, k] * panel[k, ..]

To convert a vector of weights takes as long as some multiply-adds, and each tile of rows would do
it again. The panel stays in a cache, as one of float32 weights does, and from memory come 16 bits.
The first tile makes it on the way, step by step: by itself that would take as long as a tile. Where
tiles are shared among cores, none is the first, and all of it is made before, in parallel.
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
from .prefetch import at_zero, with_body

# Of a loop over tiles of rows.
WIDENED = "ansor.widened"
# The types that are made float32.
HALVES = ("float16", "bfloat16")
# LLVM would keep what the first tile converts in registers, those of the sums, instead of loading
# it as the others do.
_LOADED = ("-enable-load-pre:bool=false",)


def widening(sch: Any, loop: Any) -> None:
    """Let a loop over tiles make float32 of weights of 16 bits once, and all tiles read that."""
    sch.annotate(loop, WIDENED, True)


def widened_panels(func: Any) -> Any:
    """The function, with panels in its marked loops. Its buffers have been flattened."""
    known = tvm.sym.Analyzer()
    for loop in collect(func.body, tirx.For):
        known.bind(loop.loop_var, tvm.ir.Range.from_min_extent(loop.min, loop.extent))

    def widened(stmt: Any) -> Any:
        # Another mark may stand around the loop, as a statement, and has to stay there.
        loop = stmt.body if isinstance(stmt, tirx.AttrStmt) else stmt
        if not isinstance(loop, tirx.For) or WIDENED not in (loop.annotations or {}):
            return stmt
        return _with_panels(structural_map(stmt, (tirx.For, _unmarked)), loop, known)

    found = structural_map(func.body, ((tirx.AttrStmt, tirx.For), widened), order="pre")
    return func.with_body(found)


def _unmarked(loop: Any) -> Any:
    return with_body(loop, loop.body, WIDENED)


def _with_panels(stmt: Any, loop: Any, known: Any) -> Any:
    """The statement of a loop, with a panel of each buffer of 16 bits that it multiplies by."""
    factors = [one for product in collect(loop.body, tirx.Mul) for one in (product.a, product.b)]
    loads = [load for load in map(_half, factors) if load is not None]
    for load in loads:
        alone = sum(load.source.same_as(other.source) for other in loads) == 1
        panel = _Panel.of(load, loop, known) if alone else None
        stmt = panel.around(stmt) if panel is not None else stmt
    return stmt


def _half(value: Any) -> Any:
    """The load of 16 bits that an expression makes float32, and does nothing else; or None."""
    loads = [one for one in collect(value, tvm.ir.TensorLoad) if str(one.ty.dtype) in HALVES]
    return loads[0] if len(loads) == 1 and structural_equal(value, _float32(loads[0])) else None


def _float32(load: Any) -> Any:
    """A number of 16 bits as float32, as lowering spells it: a bfloat16 is its upper half."""
    if str(load.ty.dtype) == "float16":
        return tirx.Cast("float32", load)
    bits = tirx.Cast("uint32", tirx.reinterpret("uint16", load))
    return tirx.reinterpret("float32", tirx.shift_left(bits, tirx.const(16, "uint32")))


def _region(index: Any, loops: list[Any], known: Any) -> tuple[Any, int]:
    """Where a load begins to read in nested loops, and how many elements on; 0: nobody knows."""
    start = at_zero(index, [one.loop_var for one in loops])
    bounds = known.const_int_bound(known.simplify(index - start))
    return start, bounds.max_value + 1 if bounds.min_value == 0 else 0


@dataclass(frozen=True)
class _Panel:
    """What a load of 16 bits reads in nested loops, and the float32 that are made of it.

    loops: the innermost first; the marked one is the last. start: the first element that is read.
    known: the ranges of all loops.
    """

    load: Any
    loops: list[Any]
    start: Any
    buffer: Any
    known: Any

    @classmethod
    def of(cls, load: Any, loop: Any, known: Any) -> _Panel | None:
        """The panel of a load in a marked loop; None where it might read beyond its buffer."""
        (index,), whole = load.indices, math.prod(map(int, load.source.shape))
        loops = collect(loop, tirx.For)
        start, size = _region(index, loops, known)
        if size == 0 or known.const_int_bound(index).max_value >= whole:
            return None
        around = [one for one in loops if any(load.same_as(o) for o in collect(one, type(load)))]
        return cls(load, around, start, tirx.decl_buffer((size,), "float32", "panel"), known)

    def around(self, stmt: Any) -> Any:
        """The statement of the marked loop, the panel made before it, or by the first tile."""
        step, size = self._step(), int(self.buffer.shape[0])
        before = [tirx.AllocBuffer(self.buffer)]
        if step is None:
            before.append(self._made(self.start, size, self.loops[-1].kind))

        def read(value: Any) -> Any:
            load = _half(value)
            return self._read() if load is not None and load.same_as(self.load) else value

        def begun(loop: Any) -> Any:
            if step is None or not loop.loop_var.same_as(step.loop_var):
                return loop
            return with_body(loop, tirx.SeqStmt([self._by_the_first(step), loop.body]), WIDENED)

        changes = [((tirx.Cast, tvm.ir.Call), read), (tirx.For, begun)]
        return tirx.SeqStmt([*before, structural_map(stmt, changes)])

    def _step(self) -> Any:
        """The innermost loop that is not written out, if tiles go through it one after the other.

        None where what a step reads does not lie together.
        """
        serial = [one for one in self.loops if one.kind == tirx.ForKind.SERIAL]
        if self.loops[-1].kind == tirx.ForKind.PARALLEL or not serial or not self._repeated():
            return None
        inside = self.loops[: self.loops.index(serial[0])]
        _, size = _region(self.load.indices[0], inside, self.known)
        used = [int(one.extent) for one in inside if uses(self.load.indices[0], one.loop_var)]
        return serial[0] if size == math.prod(used) else None

    def _repeated(self) -> list[Any]:
        """The variables of the loops whose steps read the same."""
        every = [one.loop_var for one in self.loops if one.kind == tirx.ForKind.SERIAL]
        return [var for var in every if not uses(self.load.indices[0], var)]

    def _by_the_first(self, step: Any) -> Any:
        """The statement with which the first tile makes what a step reads."""
        inside = self.loops[: self.loops.index(step)]
        start, size = _region(self.load.indices[0], inside, self.known)
        tile = functools.reduce(operator.add, self._repeated())
        first = undivided(tirx.EQ(tile, tirx.const(0, tile.ty.dtype)))
        return tirx.IfThenElse(first, self._made(start, size, tirx.ForKind.UNROLLED), None)

    def _made(self, start: Any, size: int, kind: Any) -> Any:
        """The statement that makes so many elements, from one of the source on."""
        vectors = [one for one in self.loops if one.kind == tirx.ForKind.VECTORIZED]
        used = [int(v.extent) for v in vectors if uses(self.load.indices[0], v.loop_var)]
        lanes = math.gcd(size, *used)
        step, lane = (tirx.Var(name, start.ty.dtype) for name in ("step", "lane"))
        at = start + step * lanes + lane
        value = _float32(tirx.BufferLoad(self.load.source, [at]))
        store = tirx.BufferStore(self.buffer, value, [self._place(at)])
        vector = tirx.For(lane, 0, lanes, tirx.ForKind.VECTORIZED, store)
        return tirx.For(step, 0, size // lanes, kind, vector)

    def _read(self) -> Any:
        return tirx.BufferLoad(self.buffer, [self._place(self.load.indices[0])])

    def _place(self, index: Any) -> Any:
        """The place in the panel of an element of the source."""
        return self.known.simplify(index - self.start)


MARK = Mark({WIDENED: flag}, Place.BEFORE, widened_panels, _LOADED, verbs=("widening",))
