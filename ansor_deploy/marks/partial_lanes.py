"""Reductions of rows of any length keep a partial result in each lane of some registers.

    for k in range(197) (marked 2x16): s = s + f(k)
    -->
    for v in range(2): for lane (vector): p[v, lane] = 0
    for k in range(6): for v in range(2): for lane (vector): p[v, lane] += f(32 k + 16 v + lane)
    for lane in range(16) (vector): p[0, lane] += f(181 + lane) if lane >= 11 else 0
    p[0] += p[1] ; p[0, ..8] += p[0, 8..] ; .. ; s = s + p[0, 0]

A row of integers that is exactly one vector is left to LLVM. It makes products of four bytes a lane
of them, and where a sum is halved, as here, it drops all lanes but the first
(`combineVPDPBUSDPattern`).

A row whose length a run decides (`codegen/lengths/`) has `if k < n:` in its loop. Then vectors are
skipped whose first term does not count, since terms from `n` on change nothing.

A row that the kernel itself has just written ends in a shorter vector instead of an overlapping
one: a load across two stores has to wait until both are in the cache.

TVM's `rfactor` makes partial results as well, but only of rows that vectors divide. In other rows
each step would have to test where the row ends, and other primitives lose that condition.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from .._lazy_tvm import collect, structural_equal, structural_map, tirx, tvm, uses
from ..system.checks import text
from . import Mark, Place

# Annotation of a reducing loop: numbers of registers and of lanes, such as "4x16".
PARTIAL_LANES = "ansor.partial_lanes"


def kept_in_lanes(sch: Any, loop: Any, vectors: int, width: int) -> None:
    """Let a reducing loop keep a partial result in each of `width` lanes of `vectors` registers."""
    sch.annotate(loop, PARTIAL_LANES, f"{vectors}x{width}")


def first_value(kind: Any, dtype: str) -> Any:
    """The neutral element of a sum, maximum or minimum (`tirx.Add`, `Max`, `Min`)."""
    if kind is tirx.Add:
        return tirx.const(0, dtype)
    if "float" in dtype:
        return tirx.const(-math.inf if kind is tirx.Max else math.inf, dtype)
    return tirx.min_value(dtype) if kind is tirx.Max else tirx.max_value(dtype)


def partial_lanes(func: Any) -> Any:
    """The function with its marked loops replaced; a loop that is no reduction stays as it is."""
    own = {one.buffer for one in collect(func.body, tirx.AllocBuffer)}
    return func.with_body(structural_map(func.body, (tirx.For, partial(_written_out, own))))


def _written_out(own: set[Any], loop: Any) -> Any:
    """The statements that replace a loop. own: buffers that the function itself allocates."""
    if (mark := (loop.annotations or {}).get(PARTIAL_LANES)) is None or not _is_reduction(loop):
        return loop
    vectors, lanes = map(int, str(mark).split("x"))  # lanes: a power of two
    vectors = min(vectors, int(loop.extent) // lanes)
    store, _ = _counted(loop)
    if lanes == int(loop.extent) and "int" in str(store.buffer.dtype):
        return loop
    loads = collect(store.value.b, tvm.ir.TensorLoad)
    made = any(one.source in own and uses(one, loop.loop_var) for one in loads)
    partials = _Partials(loop, vectors, lanes, made=made)
    return tirx.SeqStmt(list(partials.statements())) if vectors else loop


def _counted(loop: Any) -> tuple[Any, Any]:
    """The statement for each term, and the condition under which it counts; None if all count."""
    body = loop.body
    if isinstance(body, tirx.IfThenElse) and body.else_case is None:
        return body.then_case, body.condition
    return body, None


def _is_reduction(loop: Any) -> bool:
    """Whether a loop only computes s = op(s, f(k)), where s is one element that f does not read."""
    store, _ = _counted(loop)
    kinds = (tirx.Add, tirx.Max, tirx.Min)
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, kinds):
        return False
    own = tirx.BufferLoad(store.buffer, store.indices)
    others = [*store.indices, store.value.b]
    return (
        isinstance(loop.extent, tirx.IntImm)
        and structural_equal(store.value.a, own)
        and not any(uses(index, loop.loop_var) for index in store.indices)
        and not any(uses(other, store.buffer) for other in others)
    )


class _Partials:
    """The statements that replace a marked loop. made: whether the kernel itself wrote the row."""

    def __init__(self, loop: Any, vectors: int, lanes: int, *, made: bool) -> None:
        self.loop, self.made = loop, made
        self.store, self.counts = _counted(loop)
        self.vectors, self.lanes = vectors, lanes
        self.dtype = str(self.store.buffer.dtype)
        self.identity = first_value(type(self.store.value), self.dtype)
        self.partial = tirx.decl_buffer((vectors * lanes,), self.dtype, "partial")

    def statements(self) -> Iterator[Any]:
        """The statements, in the order in which they run."""
        extent, step = int(self.loop.extent), self.vectors * self.lanes
        yield tirx.AllocBuffer(self.partial)
        for vector in range(self.vectors):
            yield self._vector(vector, self.lanes, lambda _: self.identity)
        if extent >= step:
            index = self._variable("k")
            added = [self._added(index * step, vector) for vector in range(self.vectors)]
            body = self._as_many_as_count(index * step, added)
            yield tirx.For(index, 0, extent // step, tirx.ForKind.SERIAL, body)
        whole = extent - extent % self.lanes
        for start in range(extent - extent % step, whole, self.lanes):
            yield self._if_counts(start, self._added(start, 0))
        if whole < extent and self.made:
            yield self._if_counts(whole, self._added(whole, 0, extent - whole))
        elif whole < extent:
            yield self._if_counts(whole, self._last(extent - self.lanes, whole))
        yield from self._joined()

    def _added(self, start: Any, vector: int, width: int = 0) -> Any:
        """Add a vector of terms to its lanes. The terms begin at `start` plus the vector's place.

        width: the vector's lanes, if it has fewer than others.
        """
        at = vector * self.lanes
        value = lambda lane: self._sum(at + lane, self._term(start + at + lane))  # noqa: E731
        return self._vector(vector, width or self.lanes, value)

    def _last(self, start: int, fresh: int) -> Any:
        """Add the last vector of terms, except those before `fresh`, which were added already."""

        def value(lane: Any) -> Any:
            term = tirx.Select(lane + start >= fresh, self._term(lane + start), self.identity)
            return self._sum(lane, term)

        return self._vector(0, self.lanes, value)

    def _joined(self) -> Iterator[Any]:
        """Add all vectors into the first, halve that until one lane is left, and add it to s."""
        for vector in range(1, self.vectors):
            yield self._moved(vector * self.lanes, self.lanes)
        half = self.lanes // 2
        while half:
            yield self._moved(half, half)
            half //= 2
        total = type(self.store.value)(self.store.value.a, self._load(0))
        yield tirx.BufferStore(self.store.buffer, total, self.store.indices)

    def _moved(self, start: int, width: int) -> Any:
        """Add `width` partial results from `start` on to the first ones."""
        return self._vector(0, width, lambda lane: self._sum(lane, self._load(start + lane)))

    def _vector(self, vector: int, width: int, value: Callable[[Any], Any]) -> Any:
        """Set `width` lanes of a vector of partial results, each to `value` of its lane."""
        lane = self._variable("lane")
        store = tirx.BufferStore(self.partial, value(lane), [vector * self.lanes + lane])
        return tirx.For(lane, 0, width, tirx.ForKind.VECTORIZED, store)

    def _sum(self, at: Any, term: Any) -> Any:
        return type(self.store.value)(self._load(at), term)

    def _load(self, at: Any) -> Any:
        return tirx.BufferLoad(self.partial, [at])

    def _term(self, index: Any) -> Any:
        """The term f of an index."""
        return self._at(self.store.value.b, index)

    def _if_counts(self, first: Any, terms: Any) -> Any:
        """The statement of some terms, under the condition that the first of them counts."""
        if self.counts is None:
            return terms
        return tirx.IfThenElse(self._at(self.counts, first), terms, None)

    def _as_many_as_count(self, first: Any, added: Sequence[Any]) -> Any:
        """The statements of several vectors of terms; in the last step only of those that count."""
        every = _together(added)
        if self.counts is None or len(added) == 1:
            return self._if_counts(first, every)
        starts = [first + vector * self.lanes for vector in range(len(added))]
        others = (self._if_counts(*one) for one in zip(starts[1:-1], added[1:-1], strict=True))
        some = self._if_counts(first, _together([added[0], *others]))
        return tirx.IfThenElse(self._at(self.counts, starts[-1]), every, some)

    def _at(self, value: Any, index: Any) -> Any:
        own = self.loop.loop_var
        here = tirx.const(index, str(own.ty.dtype)) if isinstance(index, int) else index
        put = lambda var: here if var.same_as(own) else var  # noqa: E731
        return structural_map(value, (tirx.Var, put))

    def _variable(self, name: str) -> Any:
        return tirx.Var(name, str(self.loop.loop_var.ty.dtype))


def _together(statements: Sequence[Any]) -> Any:
    return tirx.SeqStmt(statements) if len(statements) > 1 else statements[0]


MARK = Mark({PARTIAL_LANES: text(r"[1-9][0-9]?x(1|2|4|8|16|32|64)")}, Place.LOOPS, partial_lanes)
