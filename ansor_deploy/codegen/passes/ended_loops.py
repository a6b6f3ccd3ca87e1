"""End loops where what counts ends, instead of skipping the steps behind.

    parallel i in 2048: if i % 512 < n: y[i] = x[i]
    -->
    parallel share in 32: for h in ..: for r in ..: y[512 h + r] = x[512 h + r]     r < n

A step that is skipped takes a nanosecond. Loops over the rows of all heads, or over the samples of
a signal, have thousands, which took longer than the few that count. What is left of a parallel loop
is divided into equal shares, as `chunks.py` does where a loop has one size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

from ..._tvm import collect, structural_map, substituted, sym, tirx, tvm, uses
from .buffer_sizes import STACK_BYTES, size_of
from .chunks import CHUNKS

_FEW = 8  # a loop of fewer steps is left as it is: it may become straight code
_SERIAL, _PARALLEL = tirx.ForKind.SERIAL, tirx.ForKind.PARALLEL


@tirx.transform.prim_func_pass(opt_level=0, name="ansor.EndedLoops")
def ended_loops(func: Any, _mod: Any, _context: Any) -> Any:
    """The function with loops that end where their bodies stop doing anything, as a run decides."""
    cores = int(func.attrs["target"].attrs.get("num-cores", 1))
    ends = _Ends({store.buffer for store in collect(func.body, tirx.BufferStore)}, cores)
    return func.with_body(structural_map(func.body, (tirx.For, ends.ended)))


class _Ends:
    """Finds where loops end. made: the buffers that the function stores to."""

    def __init__(self, made: set[Any], cores: int) -> None:
        self._made, self._shares = made, CHUNKS * cores

    def ended(self, loop: Any) -> Any:
        """The loop without its last steps where these do nothing; others as they are."""
        first, count = map(_number, (loop.min, loop.extent))
        if loop.kind not in (_SERIAL, _PARALLEL) or loop.annotations or first or count < _FEW:
            return loop
        if (end := self._end(loop.body, loop.loop_var, loop.extent)) is None:
            return self._by_rows(loop)
        made = _Ended.of(loop.loop_var, loop.body, end)
        if loop.kind == _SERIAL:
            return made.after(made.steps(loop.min, made.end))
        return made.after(_shared(made.end, self._shares, made.steps))

    def _by_rows(self, loop: Any) -> Any:
        """A loop over rows of several matrices as two loops, if the inner one can end earlier."""
        dtype = loop.extent.ty.dtype
        matrix, row = (tirx.Var(name, dtype) for name in ("matrix", "row"))
        for size in _moduli(loop):
            body = _split(loop.body, loop.loop_var, size, matrix, row)
            end = self._end(body, row, tirx.const(size, dtype))
            if end is None or uses(end, matrix):
                continue
            made, count = _Ended.of(row, body, end), tirx.const(int(loop.extent) // size, dtype)
            if loop.kind == _PARALLEL:
                nest = partial(made.of_matrices, matrix)
                return made.after(_shared(made.end * count, self._shares, nest))
            rows = made.steps(loop.min, made.end)
            return made.after(tirx.For(matrix, loop.min, count, _SERIAL, rows))
        return loop

    def _end(self, stmt: Any, var: Any, most: Any) -> Any | None:
        """The step from which on a statement does nothing, as a run decides; None if unknown.

        At most `most`, and at least 0.
        """
        end = self._of(stmt, var, most)
        if end is None or not collect(end, tvm.ir.TensorLoad):
            return None
        zero = tirx.const(0, most.ty.dtype)
        return sym.Analyzer().simplify(tirx.Max(tirx.Min(end, most), zero))

    def _of(self, stmt: Any, var: Any, most: Any) -> Any | None:
        if isinstance(stmt, tirx.AllocBuffer):
            return tirx.const(0, most.ty.dtype)
        if isinstance(stmt, tirx.SeqStmt):
            ends = [self._of(one, var, most) for one in stmt.seq]
            return _joined(tirx.Max, *ends) if _all_known(ends) else None
        if not isinstance(stmt, tirx.IfThenElse):
            return None
        asked = self._asked(stmt.condition, var, most)
        end = _joined(tirx.Min, asked, self._of(stmt.then_case, var, most))
        if stmt.else_case is None or end is None:
            return end
        other = self._of(stmt.else_case, var, most)
        return None if other is None else tirx.Max(end, other)

    def _asked(self, condition: Any, var: Any, most: Any) -> Any | None:
        """The step from which on a condition does not hold; None if unknown."""
        if isinstance(condition, (tirx.And, tirx.Or)):
            sides = [self._asked(one, var, most) for one in (condition.a, condition.b)]
            if isinstance(condition, tirx.And):
                return _joined(tirx.Min, *sides)
            return tirx.Max(*sides) if _all_known(sides) else None
        if any(load.source in self._made for load in collect(condition, tvm.ir.TensorLoad)):
            return None
        if not uses(condition, var):
            return tirx.Select(condition, most, tirx.const(0, most.ty.dtype))
        end = _below(condition, var)
        return None if end is None else end.astype(most.ty.dtype)


class _Ended:
    """The steps of a loop up to an end, which a variable holds."""

    def __init__(self, var: Any, body: Any, value: Any) -> None:
        self._var, self._body, self._value = var, body, value
        self.end = tirx.Var("end", value.ty.dtype)

    @classmethod
    def of(cls, var: Any, body: Any, value: Any) -> _Ended:
        """The steps, without a condition that asks nothing but for the end."""
        alone = isinstance(body, tirx.IfThenElse) and body.else_case is None
        asks = alone and isinstance(body.condition, (tirx.LT, tirx.LE))
        return cls(var, body.then_case if asks else body, value)

    def after(self, stmt: Any) -> Any:
        """A statement after the one that sets the end."""
        return tirx.SeqStmt([tirx.Bind(self.end, self._value), stmt])

    def steps(self, begin: Any, end: Any) -> Any:
        """The steps from one to another."""
        return tirx.For(self._var, begin, end - begin, _SERIAL, self._body)

    def of_matrices(self, matrix: Any, begin: Any, end: Any) -> Any:
        """The steps for rows from one to another, which are counted through all matrices."""
        rows, zero, one = self.end, *(tirx.const(n, matrix.ty.dtype) for n in (0, 1))
        start = tirx.Var("start", matrix.ty.dtype)
        own = self.steps(start, tirx.Min(end - matrix * rows, rows))
        body = tirx.SeqStmt([tirx.Bind(start, tirx.Max(begin - matrix * rows, zero)), own])
        first, last = tirx.Div(begin, rows), tirx.Div(end + rows - one, rows)
        return tirx.For(matrix, first, last - first, _SERIAL, body)


def _shared(count: Any, chunks: int, part: Callable[[Any, Any], Any]) -> Any:
    """A parallel loop over equal shares of some steps. part: the statement for one share.

    There are as many shares as chunks, so that all threads begin with equally many steps. Where a
    share allocates memory, which it does before it has a step, there is none without a step.
    """
    dtype = count.ty.dtype
    names = ("share", "shares", "begin", "end")
    share, shares, begin, end = (tirx.Var(name, dtype) for name in names)
    zero, one, most = (tirx.const(number, dtype) for number in (0, 1, chunks))
    steps = part(begin, end)
    allocates = any(size_of(made) > STACK_BYTES for made in collect(steps, tirx.AllocBuffer))
    places = ((begin, share), (end, share + one))
    bounds = [tirx.Bind(name, tirx.Div(at * count, shares)) for name, at in places]
    body = tirx.SeqStmt([*bounds, tirx.IfThenElse(begin < end, steps, None)])
    loop = tirx.For(share, zero, shares, _PARALLEL, body)
    return tirx.SeqStmt([tirx.Bind(shares, tirx.Min(count, most) if allocates else most), loop])


def _joined(kind: Any, *ends: Any | None) -> Any | None:
    """The least or the largest of the ends that are known; None where none is."""
    known = [one for one in ends if one is not None]
    return reduce(kind, known) if known else None


def _all_known(ends: Sequence[Any | None]) -> bool:
    return all(one is not None for one in ends)  # ends compare as expressions


def _below(condition: Any, var: Any) -> Any | None:
    """The least `var` for which `factor * (var // by) + rest < bound` fails; None for others."""
    if not isinstance(condition, (tirx.LT, tirx.LE)) or uses(condition.b, var):
        return None
    place = tirx.Var("place", condition.a.ty.dtype)
    by = next(_divisors(condition.a, var), 1)

    def put(one: Any) -> Any:
        found = _divides(one, var, by) if by > 1 else _is(one, var)
        return place if found and not isinstance(one, tirx.FloorMod) else one

    index = structural_map(condition.a, ((tirx.FloorDiv, tirx.Cast, tirx.Var), put), order="pre")
    linear = sym.detect_linear_equation(index, [place])
    if len(linear) != 2 or _number(linear[0]) < 1 or uses(linear[1], var):
        return None
    factor, rest = linear
    more = factor if isinstance(condition, tirx.LE) else factor - 1
    return tirx.floordiv(condition.b - rest + more, factor) * by


def _divisors(index: Any, var: Any) -> Iterator[int]:
    """By what an index divides a variable."""
    quotients = (one for one in collect(index, tirx.FloorDiv) if _is(one.a, var))
    return (int(one.b) for one in quotients if _number(one.b) > 1)


def _divides(one: Any, var: Any, by: int) -> bool:
    """Whether an expression is the quotient or the remainder of a variable by a number."""
    quotient = isinstance(one, (tirx.FloorDiv, tirx.FloorMod))
    return quotient and _is(one.a, var) and _number(one.b) == by


def _number(one: Any) -> int:
    """The value of a constant; 0 for any other expression, also for one that has a `value`."""
    return int(one) if isinstance(one, tirx.IntImm) else 0


def _is(one: Any, var: Any) -> bool:
    """Whether an expression is a variable, or a wider copy of it."""
    return bool((one.value if isinstance(one, tirx.Cast) else one).same_as(var))


def _moduli(loop: Any) -> Iterator[int]:
    """By what conditions of a loop's step divide the loop's variable."""
    body = loop.body
    for stmt in body.seq if isinstance(body, tirx.SeqStmt) else [body]:
        if isinstance(stmt, tirx.IfThenElse):
            for one in collect(stmt.condition, tirx.FloorMod):
                by = _number(one.b)
                if _is(one.a, loop.loop_var) and by > 1 and int(loop.extent) % by == 0:
                    yield int(by)


def _split(body: Any, var: Any, size: int, matrix: Any, row: Any) -> Any:
    """A body at the step `size * matrix + row`."""

    def part(one: Any) -> Any:
        if not _divides(one, var, size):
            return one
        return (row if isinstance(one, tirx.FloorMod) else matrix).astype(one.ty.dtype)

    parted = structural_map(body, ((tirx.FloorDiv, tirx.FloorMod), part))
    return substituted(parted, [(var, matrix * size + row)])
