"""Sums of products of bytes in matrix registers, which have sixteen rows by sixteen columns (AMX).

    acc[.., ..] = 0
    for k: for r in 32: for c in 32: for g in 16 (marked): for i in 4:
        acc[r, c] += x[r, k, 4 g + i] * w[k, g, c, i]
    -->
    sums = four tiles of zeros
    for k: of two tiles of rows and two of weights, multiply each by each and add up
    acc = sums

A register has up to sixteen rows of 64 bytes each. A row of it holds sixteen groups of four steps
of one row of data, or one such group of weights for sixteen columns, as in `dot.py`, or sums of
sixteen columns. One instruction (AMX's `tdpbusd`) adds up 16384 products. The rows of a register
lie at equal distances in memory: where they do not, as at the end of an image's row, another
register begins.

The sizes in use must be set for all registers first. That takes as long as ten instructions, so it
is done once around all tiles of the same sizes, but within the code of one core.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from .._lazy_tvm import (
    at_step,
    collect,
    has_features,
    lane,
    structural_map,
    tirx,
    tvm,
    tvm_target,
    uses,
)
from ..system.checks import flag
from . import Mark, Place
from .dot import STEPS, Factor

if TYPE_CHECKING:
    from ..target import Target

# Annotation of a loop over groups of four steps, around one over the four.
MATRIX = "ansor.matrix"
# Most rows, and most columns or groups of steps, of a register.
SIDE = 16
# How many registers a processor has.
REGISTERS = 8
# The processor's features that are needed.
_NEEDED = ("amx-tile", "amx-int8")
# Attribute around statements that need registers of some sizes, until these are set.
_SIZES = "ansor.matrix_sizes"
# Bytes of a 32-bit number.
_WORD = 4
# Bytes of the configuration with the sizes of all registers.
_SETTING = 64


def has_matrices(target: Target) -> bool:
    """Whether a processor multiplies matrices of bytes."""
    return target.gpu is None and _has(tvm_target(target))


def _has(target: Any) -> bool:
    return target.kind.name == "llvm" and has_features(str(target), _NEEDED)


def summed_by_matrices(sch: Any, loop: Any) -> None:
    """Let lowering add up the groups of steps of a loop in matrix registers."""
    sch.annotate(loop, MATRIX, True)


def is_summed_by_matrices(sch: Any, loops: Sequence[Any]) -> bool:
    """Whether one of a block's loops has this mark."""
    return any(_is_marked(sch.get(loop)) for loop in loops)


def _is_marked(loop: Any) -> bool:
    return MATRIX in (loop.annotations or {})


def matrix_tiles(func: Any) -> Any:
    """The function with marked loops in matrix registers, and code that sets their sizes."""
    if not any(map(_is_marked, collect(func.body, tirx.For))) or not _has(func.attrs["target"]):
        return func
    summed = structural_map(func.body, ((tirx.SeqStmt, tirx.For), _summed), order="pre")
    kinds = (tirx.SeqStmt, tirx.For, tirx.IfThenElse, tirx.AttrStmt)
    return func.with_body(structural_map(summed, (kinds, _with_sizes), order="pre"))


def _summed(stmt: Any) -> Any:
    """A marked nest in matrix registers, without the statement before it that zeroes its sums.

    Other statements stay as they are.
    """
    if isinstance(stmt, tirx.For):
        nest = _Nest.of(stmt)
        return nest.summed() if nest else stmt
    found: list[Any] = []
    for one in stmt.seq:
        nest = _Nest.of(one)
        if nest and found and nest.is_started_by(found[-1]):
            found[-1] = nest.summed(started=False)
        else:
            found.append(one)
    return tirx.SeqStmt(found) if len(found) > 1 else found[0]


@dataclass(frozen=True)
class _Operand:
    """A buffer that is read or written, and the index."""

    buffer: Any
    index: Any

    @classmethod
    def of(cls, factor: Any) -> _Operand | None:
        """The operand that a factor reads; None where it is computed, or read under a condition."""
        found = Factor.of(factor)
        if found is None or found.inside is not None:
            return None
        return cls(found.load.source, found.load.indices[0])

    @property
    def kind(self) -> str:
        """The type of its elements."""
        return str(self.buffer.dtype)

    def apart(self, loop: Any) -> int | None:
        """The stride of a loop's steps in elements; None where that is not known."""
        return _number(at_step(self.index, loop, 1) - at_step(self.index, loop, 0))

    def at(self, loops: Sequence[Any], steps: Sequence[int]) -> Any:
        """The index at the given steps of some loops."""
        index = self.index
        for loop, step in zip(loops, steps, strict=True):
            index = at_step(index, loop, step)
        return index

    def address(self, loops: Sequence[Any], steps: Sequence[int]) -> Any:
        """The address at the given steps of some loops."""
        at = tvm.sym.Analyzer().simplify(self.at(loops, steps))
        return tirx.address_of(tirx.BufferLoad(self.buffer, [at]))


@dataclass(frozen=True)
class _Part:
    """The rows or the columns of a register.

    first: where they begin, as steps of the loops over them. count: how many. apart: the strides in
    elements, in the operand and in the sums.
    """

    first: tuple[int, ...]
    count: int
    apart: tuple[int, int]


@dataclass(frozen=True)
class _Nest:
    """The nest of all loops that add to the same sums.

    around: loops over the other steps of the sums. beside: what they also do at each step, such as
    to prefetch. rows, columns: loops over rows and columns.
    within: the marked loop and the innermost one. read, weights, sums: the operands and the sums.
    high, wide: the parts of the rows, and of the columns, that a register each holds.
    """

    around: list[Any]
    beside: list[Any]
    rows: list[Any]
    columns: list[Any]
    within: list[Any]
    read: _Operand
    weights: _Operand
    sums: _Operand
    high: list[_Part]
    wide: list[_Part]

    @classmethod
    def of(cls, loop: Any) -> _Nest | None:
        """The nest that begins with a loop; None where the loops have another form."""
        chain, beside = _chain(loop)
        if not chain:
            return None
        *outer, steps, four = chain
        operands = _operands(steps, four) if _is_marked(steps) else None
        if operands is None:
            return None
        read, weights, sums = operands
        over = [one for one in outer if uses(sums.index, one.loop_var)]
        columns = [one for one in over if uses(weights.index, one.loop_var)]
        rows = [one for one in over if one not in columns]
        high, wide = _parts(rows, read, sums), _parts(columns, weights, sums)
        apart = any(uses(read.index, one.loop_var) for one in columns)
        apart |= any(one.count > 1 and one.apart != (STEPS, 1) for one in wide)
        if apart or len(high) * len(wide) == 0 or _registers(high, wide) > REGISTERS:
            return None
        around = [one for one in outer if one not in over]
        return cls(around, beside, rows, columns, [steps, four], read, weights, sums, high, wide)

    def is_started_by(self, stmt: Any) -> bool:
        """Whether a statement only sets the sums to zero."""
        stores = collect(stmt, tirx.BufferStore)
        return bool(stores) and all(
            one.buffer.same_as(self.sums.buffer) and _is_zero(one.value) for one in stores
        )

    def summed(self, *, started: bool = True) -> Any:
        """The statements that replace the nest. started: whether sums are loaded, not zeroed."""
        sums = list(self._sums())
        begun = [_called("tileloadd64", *one) for one in sums]
        if not started:
            begun = [_called("tilezero", register) for register, *_ in sums]
        inner: Any = tirx.SeqStmt([*self.beside, *self._loads(), *self._products()])
        for loop in reversed(self.around):
            inner = tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, inner)
        every = [*begun, inner, *(_called("tilestored64", *one) for one in sums)]
        sizes = tvm.ir.StringImm(self._setting().hex())
        return tirx.AttrStmt(tirx.const(0, "int32"), _SIZES, sizes, tirx.SeqStmt(every))

    def _sums(self) -> Iterator[tuple[int, Any, int]]:
        """Each register of sums, with its address and the bytes from one row to the next."""
        for number, (row, column) in enumerate(product(self.high, self.wide)):
            loops, steps = [*self.rows, *self.columns], (*row.first, *column.first)
            yield number, self.sums.address(loops, steps), _WORD * row.apart[1]

    def _loads(self) -> Iterator[Any]:
        """The statements that load both operands at a step of the loops around."""
        inside = (0,) * len(self.within)
        panel = self.weights.apart(self.within[0])
        for number, row in zip(self._of_rows, self.high, strict=True):
            address = self.read.address([*self.rows, *self.within], (*row.first, *inside))
            yield _called("tileloadd64", number, address, row.apart[0])
        for number, column in zip(self._of_weights, self.wide, strict=True):
            address = self.weights.address([*self.columns, *self.within], (*column.first, *inside))
            yield _called("tileloadd64", number, address, panel)

    def _products(self) -> Iterator[Any]:
        """The statements that multiply each register of rows by each register of weights."""
        for number, pair in enumerate(product(self._of_rows, self._of_weights)):
            yield _called("tdpbusd", number, *pair)

    @property
    def _of_rows(self) -> range:
        """The registers of rows, which come after those of sums."""
        first = len(self.high) * len(self.wide)
        return range(first, first + len(self.high))

    @property
    def _of_weights(self) -> range:
        """The registers of weights, which come last."""
        return range(self._of_rows.stop, self._of_rows.stop + len(self.wide))

    def _setting(self) -> bytes:
        """The configuration of all registers: a palette, and each one's bytes of a row and rows."""
        groups = int(self.within[0].extent)
        sizes = [(row.count, _WORD * one.count) for row, one in product(self.high, self.wide)]
        sizes += [(row.count, STEPS * groups) for row in self.high]
        sizes += [(groups, _WORD * one.count) for one in self.wide]
        made = bytearray(_SETTING)
        made[0] = 1
        for at, (rows, size) in enumerate(sizes):
            made[16 + 2 * at], made[48 + at] = size, rows
        return bytes(made)


def _operands(steps: Any, four: Any) -> tuple[_Operand, _Operand, _Operand] | None:
    """The rows, the weights and the sums of two loops; None where these have another form."""
    store, value = four.body, getattr(four.body, "value", None)
    if not isinstance(value, tirx.Add) or not isinstance(value.b, tirx.Mul):
        return None
    factors = [_Operand.of(one) for one in (value.b.a, value.b.b)]
    kinds = {one.kind: one for one in factors if one is not None}
    if set(kinds) != {"uint8", "int8"} or not int(steps.extent) <= SIDE:
        return None
    read, weights = kinds["uint8"], kinds["int8"]
    beside = read.apart(steps) == int(four.extent) == STEPS and weights.apart(steps)
    near = read.apart(four) == weights.apart(four) == 1
    return (read, weights, _Operand(store.buffer, store.indices[0])) if beside and near else None


def _parts(loops: Sequence[Any], read: _Operand, sums: _Operand) -> list[_Part]:
    """The steps of loops, in parts of at most sixteen with equal strides in operand and sums.

    Empty where a stride is not known, or where a run decides how many steps there are.
    """
    if not all(isinstance(loop.extent, tirx.IntImm) for loop in loops):
        return []
    every = list(product(*(range(int(loop.extent)) for loop in loops)))
    places = [[one.at(loops, steps) for steps in every] for one in (read, sums)]
    gaps = [tuple(_number(b - a) for a, b in pairwise(one)) for one in places]
    if any(None in one for one in gaps):
        return []
    apart = list(zip(*gaps, strict=True))
    found = []
    for first, count in _even(_runs(apart)):
        found.append(_Part(every[first], count, apart[first] if count > 1 else (0, 0)))
    return found


def _runs(gaps: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Runs of places at equal distances, as (first, how many). gaps: the distances between them."""
    first = 0
    for at in range(1, len(gaps) + 1):
        if at == len(gaps) or gaps[at] != gaps[first]:
            yield first, at - first + 1
            first = at + 1
    if first == len(gaps):
        yield first, 1


def _even(runs: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The runs cut into runs of at most sixteen, with nearly equal lengths."""
    for first, count in runs:
        parts = math.ceil(count / SIDE)
        ends = [count * at // parts for at in range(parts + 1)]
        yield from ((first + start, end - start) for start, end in pairwise(ends))


def _registers(high: Sequence[_Part], wide: Sequence[_Part]) -> int:
    return len(high) * len(wide) + len(high) + len(wide)


def _number(expr: Any) -> int | None:
    found = tvm.sym.Analyzer().simplify(expr)
    return int(found) if isinstance(found, tirx.IntImm) else None


def _is_zero(value: Any) -> bool:
    value = lane(value)
    return isinstance(value, tirx.IntImm) and int(value) == 0


def _chain(loop: Any) -> tuple[list[Any], list[Any]]:
    """A loop and the perfectly nested loops inside it, and the instructions beside one of these.

    No loops where it has none inside.
    """
    loops, beside = [], []
    while isinstance(loop, tirx.For):
        loops.append(loop)
        loop = loop.body
        if isinstance(loop, tirx.SeqStmt) and _are_instructions(loop.seq[:-1]):
            *beside, loop = loop.seq
    return (loops, beside) if len(loops) > 1 else ([], [])


def _are_instructions(stmts: Sequence[Any]) -> bool:
    return all(isinstance(one, tirx.Evaluate) for one in stmts)


def _called(name: str, *given: Any) -> Any:
    """The statement of an instruction. given: registers, or one with an address and a stride."""
    kinds = ("int8", "int8" if name == "tdpbusd" else "", "int8" if name == "tdpbusd" else "int64")
    made = [
        tirx.const(one, kind) if isinstance(one, int) else one
        for one, kind in zip(given, kinds, strict=False)
    ]
    return tirx.Evaluate(tirx.call_llvm_intrin("void", f"llvm.x86.{name}", *made))


def _with_sizes(stmt: Any) -> Any:
    """A statement with register sizes set around it, if one core runs it and all sizes agree."""
    marks = [one for one in collect(stmt, tirx.AttrStmt) if one.attr_key == _SIZES]
    sizes = {str(one.value.value) for one in marks}
    shared = any(one.kind == tirx.ForKind.PARALLEL for one in collect(stmt, tirx.For))
    if len(sizes) != 1 or shared:
        return stmt
    bare = structural_map(stmt, (tirx.AttrStmt, _bare))
    buffer = tirx.decl_buffer((_SETTING // _WORD,), "int32", "sizes")
    first = tirx.address_of(tirx.BufferLoad(buffer, [tirx.const(0, "int32")]))
    stores = list(_stores(buffer, bytes.fromhex(sizes.pop())))
    around = [_called("ldtilecfg", first), bare, _called("tilerelease")]
    every = tirx.SeqStmt([tirx.AllocBuffer(buffer), *stores, *around])
    # A chunk of a loop's tasks (`codegen/passes/chunks.py`) may be empty.
    may_be_empty = isinstance(stmt, tirx.For) and not isinstance(stmt.extent, tirx.IntImm)
    return tirx.IfThenElse(stmt.extent > 0, every) if may_be_empty else every


def _stores(buffer: Any, setting: bytes) -> Iterator[Any]:
    """The statements that store bytes, a word at a time."""
    for at in range(len(setting) // _WORD):
        word = int.from_bytes(setting[_WORD * at : _WORD * (at + 1)], "little")
        yield tirx.BufferStore(buffer, tirx.const(word, "int32"), [tirx.const(at, "int32")])


def _bare(mark: Any) -> Any:
    return mark.body if mark.attr_key == _SIZES else mark


MARK = Mark(
    {MATRIX: flag}, Place.VECTORS, matrix_tiles, verbs=("has_matrices", "summed_by_matrices")
)
