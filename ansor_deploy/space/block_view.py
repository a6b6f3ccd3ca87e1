"""Questions that rules ask about a block: what it computes, what it reads, and what reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._tvm import collect, op_name, shape_of, structural_map, tirx, tvm, uses
from .code_size import ARITHMETIC
from .rule import Pass

SPATIAL, REDUCE = tirx.IterVar.DataPar, tirx.IterVar.CommReduce
# Calls too costly to inline into a reduction, which would repeat them for every use.
COSTLY = ("exp", "erf", "tanh", "pow", "sigmoid", "log", "if_then_else")
# Annotation of a stage that a rewriting made, and that must not be inlined.
KEPT = "ansor.kept"

# Most operations in all copies of a stage that is inlined. In a chain of stages that each read
# their predecessor twice, copies would double with every stage.
MOST_COPIED = 1 << 8


# Most uses of variables in one index; a variable that is used twice counts twice.
MOST_IN_AN_INDEX = 1 << 6


def _variables(index: Any) -> int:
    """How often an expression uses variables; a shared subexpression counts for each use."""
    fields = (getattr(index, name, None) for name in ("a", "b", "condition"))
    operands = [one for one in fields if one is not None]
    return sum(map(_variables, operands)) if operands else isinstance(index, tirx.Var)


def blocks(sch: Any) -> list[Any]:
    """The program's blocks in order, as the schedule's random variables."""
    return list(sch.get_child_blocks(sch.get_sblock("root")))


def factor(index: Any, var: Any) -> int:
    """The constant that multiplies a variable in an index; 1 without one."""
    for product in collect(index, tirx.Mul):
        if product.a.same_as(var) and isinstance(product.b, tirx.IntImm):
            return int(product.b.value)
    return 1


def _distances(buffer: Any) -> list[int]:
    """A buffer's strides: how many elements apart neighbours along each axis are."""
    shape = shape_of(buffer)
    return [math.prod(shape[at + 1 :]) for at in range(len(shape))]


def divisions(root: Any, kind: str) -> list[tuple[Any, int]]:
    """Each dividend of a division by a constant, with that constant. kind: FloorDiv or FloorMod."""
    found = collect(root, getattr(tirx, kind))
    return [(one.a, int(one.b.value)) for one in found if isinstance(one.b, tirx.IntImm)]


def _is_of_floats(index: Any) -> bool:
    """Whether an index is computed from floats."""
    casts = collect(index, tirx.Cast)
    return any(str(cast.value.ty.dtype).startswith("float") for cast in casts)


def sums_products(statement: Any) -> bool:
    """Whether a statement is out = out + a * b, for any a and b."""
    added = getattr(statement, "value", None)
    term = added.b if isinstance(added, tirx.Add) else None
    while isinstance(term, tirx.Cast):
        term = term.value
    return isinstance(term, tirx.Mul)


@dataclass(frozen=True)
class BlockView:
    """A block of a schedule. Each property is computed from the schedule's present state.

    rv: the block's random variable, which the schedule's primitives take. The methods without
    arguments at the end are guards that rules share: each gives the `Pass` of a block that does not
    fit, or None.

        return view.reduces_nothing() or view.has_several_results() or ApplyAndSkipRest()
    """

    sch: Any
    rv: Any

    @property
    def node(self) -> Any:
        """The block in TVM's own form (`tirx.SBlock`)."""
        return self.sch.get(self.rv)

    @property
    def name(self) -> str:
        """The block's name in the schedule."""
        return str(self.node.name_hint)

    @property
    def spatial(self) -> list[int]:
        """Extents of its data-parallel axes, outermost first."""
        return [int(axis.dom.extent) for axis in self.axes(SPATIAL)]

    @property
    def reduced(self) -> list[int]:
        """Extents of its reducing axes, outermost first."""
        return [int(axis.dom.extent) for axis in self.axes(REDUCE)]

    def axes(self, kind: int) -> list[Any]:
        """Its axes of a kind, `SPATIAL` or `REDUCE`, outermost first."""
        return [axis for axis in self.node.iter_vars if axis.iter_type == kind]

    @property
    def is_reduction(self) -> bool:
        """Whether any of its axes reduces."""
        return bool(self.axes(REDUCE))

    @property
    def producers(self) -> list[BlockView]:
        """The blocks that compute what it reads."""
        return [BlockView(self.sch, rv) for rv in self.sch.get_producers(self.rv)]

    @property
    def consumers(self) -> list[BlockView]:
        """The blocks that read what it computes."""
        return [BlockView(self.sch, rv) for rv in self.sch.get_consumers(self.rv)]

    @property
    def padding(self) -> BlockView | None:
        """The stage that pads one of its operands, for this block only; None without one."""
        for one in self.producers:
            alone = not one.producers and len(one.consumers) == 1
            if alone and one.calls(["if_then_else"]):
                return one
        return None

    @property
    def epilogue(self) -> BlockView | None:
        """Its only consumer where that is elementwise; else None.

        None also for a consumer that reads remainders of its axes, and so in another order: TVM
        would move it into a tile that lacks some of the elements that it reads.
        """
        found = [one for one in self.consumers if not one.is_reduction]
        fit = len(found) == len(self.consumers) == 1 and not found[0].reads_remainders
        return found[0] if fit else None

    @property
    def reads_remainders(self) -> bool:
        """Whether an index has an axis modulo a constant, as where phases are interleaved."""
        terms = [term for term, _ in divisions(self.node.body, "FloorMod")]
        return any(isinstance(term, tirx.Var) for term in terms)

    @property
    def holds_blocks(self) -> bool:
        """Whether other blocks are nested in it, as in the loop over a recurrence's steps."""
        return bool(collect(self.node.body, tvm.s_tir.SBlock))

    @property
    def is_copy(self) -> bool:
        """Whether it copies elements without computing anything."""
        return isinstance(getattr(self.node.body, "value", None), tvm.ir.TensorLoad)

    @property
    def widens_bytes(self) -> bool:
        """Whether it widens bytes to 16 bits, for products that add up pairs of these."""
        (made, *_), read = self.node.writes, [region.source for region in self.node.reads]
        return str(made.source.dtype) == "int16" and any(one.dtype.bits == 8 for one in read)

    @property
    def operands(self) -> list[tuple[Any, list[Any]]]:
        """Each buffer that it reads, except its own output, with the index expressions.

        A buffer read at two places appears twice.
        """
        written = [region.source for region in self.node.writes]
        return [
            (load.source, list(load.indices))
            for load in collect(self.node.body, tvm.ir.TensorLoad)
            if not any(load.source.same_as(buffer) for buffer in written)
        ]

    @property
    def steps(self) -> list[list[int | None]]:
        """For each operand, its strides along the data-parallel axes, in elements.

        A stride is None where it varies.
        """
        known = tvm.sym.Analyzer()
        for axis in self.node.iter_vars:
            known.bind(axis.var, axis.dom)

        def step(index: Any, axis: Any) -> int | None:
            put = lambda var: var + 1 if var.same_as(axis.var) else var  # noqa: E731
            found = known.simplify(structural_map(index, (tirx.Var, put)) - index)
            return int(found.value) if isinstance(found, tirx.IntImm) else None

        found = []
        for buffer, indices in self.operands:
            place = sum(i * d for i, d in zip(indices, _distances(buffer), strict=True))
            place = known.simplify(place) if indices else tirx.const(0, "int64")
            found.append([step(place, axis) for axis in self.axes(SPATIAL)])
        return found

    @property
    def bits(self) -> int:
        """Bits of the widest element that it writes, or reads as a value; indices do not count.

        An element from which a table's index is computed in floats counts as a value.
        """
        loads = collect(self.node.body, tvm.ir.TensorLoad)
        written = {int(one.source.dtype.bits) for one in self.node.writes}
        if len(widths := written | {int(load.source.dtype.bits) for load in loads}) > 1:
            places = [i for load in loads for i in load.indices if not _is_of_floats(i)]
            indices = [one for i in places for one in collect(i, tvm.ir.TensorLoad)]
            values = [one for one in loads if not any(one.same_as(other) for other in indices)]
            widths = written | {int(load.source.dtype.bits) for load in values}
        return max(8, *widths)

    @property
    def reads(self) -> list[tuple[int, list[Any]]]:
        """Each operand once: its position among the block's reads, and its first indices."""
        operands, found = self.operands, []
        for at, region in enumerate(self.node.reads):
            indices = [loaded for buffer, loaded in operands if buffer.same_as(region.source)]
            found += [(at, first) for first in indices[:1]]
        return found

    @property
    def largest_operand(self) -> tuple[Any, list[Any]]:
        """The operand with the most elements, and its first indices."""
        operands = [(self.node.reads[at].source, indices) for at, indices in self.reads]
        return max(operands, key=lambda one: math.prod(map(int, one[0].shape)))

    def has_constant(self, buffer: Any) -> bool:
        """Whether a buffer is a constant of the model, which a library may store in any layout."""
        func = self.sch.mod["main"]
        free = [int(index) for index in (func.attrs or {}).get("layout_free_buffers", [])]
        return any(func.params[index].same_as(buffer) for index in free)

    def calls(self, names: Sequence[str] = ("",)) -> bool:
        """Whether its body calls an operator whose name ends in one of these; by default, any."""
        found = collect(self.node.body, tvm.ir.Call)
        return any(op_name(call).endswith(tuple(names)) for call in found)

    @property
    def is_contraction(self) -> bool:
        """Whether it sums products, and an operand lacks an axis of the output (Ansor 4.1)."""
        if not self.is_reduction or not sums_products(self.node.body):
            return False
        wide = [axis.var for axis in self.axes(SPATIAL) if int(axis.dom.extent) > 1]
        operands = self.operands
        return len(operands) >= 2 and any(
            not any(uses(index, var) for index in indices)
            for _, indices in operands
            for var in wide
        )

    @property
    def keeps_contiguous_axis(self) -> bool:
        """Whether the contiguous axis of a reduced operand is that of the result.

        Lanes are then whole results. An operand with one value a row, such as a maximum, does not
        count.
        """
        spatial = self.axes(SPATIAL)
        return bool(spatial) and any(
            indices and uses(indices[-1], spatial[-1].var) for indices in self._reduced_operands
        )

    @property
    def is_along_rows(self) -> bool:
        """Whether it reduces along the contiguous axis of every buffer that it reduces."""
        if self.is_contraction:
            return False
        spatial = self.axes(SPATIAL)
        for indices in self._reduced_operands:
            if spatial and uses(indices[-1], spatial[-1].var):
                return int(spatial[-1].dom.extent) == 1
        return self.is_reduction

    @property
    def _reduced_operands(self) -> list[list[Any]]:
        """The indices of each operand that varies along a reducing axis."""
        reduced = [axis.var for axis in self.axes(REDUCE)]
        return [
            indices
            for _, indices in self.operands
            if any(uses(index, var) for index in indices for var in reduced)
        ]

    @property
    def stays(self) -> str:
        """Why it should not be inlined into its consumers; "" where it should."""
        if self.is_reduction:
            return "it reduces"
        if KEPT in (self.node.annotations or {}):
            return "it was made to be computed once"
        return self._costs_again(self.consumers)

    def _costs_again(self, consumers: Sequence[BlockView]) -> str:
        """Why each consumer should not compute it again; "" where each should."""
        if not consumers:
            return "it is an output"
        reduced = any(consumer.is_reduction for consumer in consumers)
        if reduced and (self.calls(COSTLY) or self.widens_bytes):
            return "a reduction would compute it again for every use"
        if len(consumers) > 1 and self.calls():
            return "several consumers would each compute it"
        if self._copied(consumers) > MOST_COPIED:
            return "its consumers would write it out too often"
        if self._index_size(consumers) > MOST_IN_AN_INDEX:
            return "its indices in its consumers would be too long"
        return ""

    def _index_size(self, consumers: Sequence[BlockView]) -> int:
        """An estimate of how often a consumer's index would use variables after inlining.

        Each reshape uses a variable twice, so every reshape of a chain doubles an index.
        """
        (made, *_) = [region.source for region in self.node.writes]
        loads = [one for user in consumers for one in collect(user.node.body, tvm.ir.TensorLoad)]
        read = [index for one in loads if one.source.same_as(made) for index in one.indices]
        own = [i for one in collect(self.node.body, tvm.ir.TensorLoad) for i in one.indices]
        return max(map(_variables, read), default=0) * max(map(_variables, own), default=0)

    def _copied(self, consumers: Sequence[BlockView]) -> int:
        """Operations in all copies after inlining, one copy for each read; 0 for a single copy."""
        (made, *_) = [region.source for region in self.node.writes]
        loads = [one for user in consumers for one in collect(user.node.body, tvm.ir.TensorLoad)]
        uses = sum(load.source.same_as(made) for load in loads)
        return uses * len(collect(self.node.body, *ARITHMETIC)) if uses > 1 else 0

    def reduces_nothing(self) -> Pass | None:
        """It has no reducing axis."""
        return None if self.is_reduction else Pass("it reduces nothing")

    def has_several_results(self) -> Pass | None:
        """It writes more than one buffer, like an argmax that gives value and position."""
        one = len(self.node.writes) == 1
        return None if one else Pass("it computes several results at once")

    def divides_what_it_shifts(self) -> Pass | None:
        """It divides a sum with a constant, or divides and has a condition.

        If axes were fused or split, TVM would simplify such indices wrongly, into those of other
        elements (`codegen/passes/flattening.py`).
        """
        kinds = ("FloorDiv", "FloorMod")
        terms = [term for kind in kinds for term, _ in divisions(self.node.body, kind)]
        sums = [one for term in terms for one in collect(term, tirx.Add, tirx.Sub)]
        shifted = any(isinstance(side, tirx.IntImm) for one in sums for side in (one.a, one.b))
        calls = collect(self.node.body, tvm.ir.Call) if terms else []
        chooses = any("if_then_else" in one.op.name for one in calls)
        return Pass("its indices would be simplified wrongly") if shifted or chooses else None

    def is_no_pass(self) -> Pass | None:
        """It reduces or has several results, so it is not one pass over one result."""
        several = self.is_reduction or self.has_several_results()
        return Pass("it is no pass over its results") if several else None

    def is_single_number(self) -> Pass | None:
        """It has no data-parallel axis."""
        return None if self.spatial else Pass("its result is a single number")

    def reuses_nothing(self) -> Pass | None:
        """It is no contraction, so tiles would not read an operand less often."""
        return None if self.is_contraction else Pass("no operand of it is reused")

    def has_partial_lanes(self) -> Pass | None:
        """It reduces along the contiguous axis, and no operand can be packed to change that."""
        whole = self.is_contraction or self.keeps_contiguous_axis
        reason = "it reduces along the contiguous axis, so lanes would be partial results"
        return None if whole else Pass(reason)

    def lacks_epilogue(self) -> Pass | None:
        """It has no elementwise consumer that a tile could end with."""
        reason = "nothing consumes it element by element: a cache stage comes first"
        return None if self.epilogue else Pass(reason)

    def has_no_register_tile(self) -> Pass | None:
        """It cannot have a tile of accumulators in registers: the first of five reasons."""
        return (
            self.reduces_nothing()
            or self.has_several_results()
            or self.is_single_number()
            or self.has_partial_lanes()
            or self.lacks_epilogue()
        )
