"""Choices that ask whether an index is below a number: behind it, what they read does not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..._tvm import collect, op_name, structural_map, sym, tirx, tvm
from .bound import Bound

# Of the variables of a block's axes, and by what they are taken modulo, 0 where they are not.
Limits = Mapping[tuple[Any, int], Bound]


@dataclass
class Known:
    """What is known of tensors, by the buffers that they are in a kernel, or by Relax's variables.

    numbers: those that hold one number, each with the variable of Relax that it is. places: those
    along an axis of which each element is its index; the axis. masks: those that say whether
    indices are below numbers; their axes, and how much is. values: those that hold one value, which
    is known. behind: those of which it is known what lies behind a bound: the axis, that, and the
    value.
    """

    numbers: dict[Any, Any] = field(default_factory=dict)
    places: dict[Any, int] = field(default_factory=dict)
    masks: dict[Any, tuple[tuple[int, Bound], ...]] = field(default_factory=dict)
    values: dict[Any, float] = field(default_factory=dict)
    behind: dict[Any, tuple[int, Bound, float]] = field(default_factory=dict)


class Read(NamedTuple):
    """A load. limits: of the axes of its block where it is needed. conditions: that hold there."""

    load: Any
    limits: Limits
    conditions: tuple[Any, ...]


def reads(
    value: Any, known: Known, limits: Limits, conditions: tuple[Any, ...] = ()
) -> Iterator[Read]:
    """The loads of a value."""
    choices: list[Any] = []

    def choice(one: Any) -> Any:
        if not is_choice(one):
            return one
        choices.append(one)
        return tirx.const(0, str(one.ty.dtype))

    rest = structural_map(value, ((tirx.Select, tvm.ir.Call), choice), order="pre")
    for load in collect(rest, tvm.ir.TensorLoad):
        yield Read(load, limits, conditions)
    for one in choices:
        condition, yes, no = parts(one)
        yield from reads(condition, known, limits, conditions)
        below = {**limits, **asked(condition, known)}
        yield from reads(yes, known, below, (*conditions, condition))
        yield from reads(no, known, limits, (*conditions, tirx.Not(condition)))


def is_choice(one: Any) -> bool:
    """Whether an expression is one of two, as a condition says."""
    return isinstance(one, tirx.Select) or operator(one) == "if_then_else"


def operator(one: Any) -> str:
    """The name of the operator that an expression calls, without its kind; "" of others."""
    return op_name(one).rpartition(".")[2]


def parts(one: Any) -> tuple[Any, Any, Any]:
    """The condition of a choice, what it is where that holds, and else."""
    if isinstance(one, tirx.Select):
        return one.condition, one.true_value, one.false_value
    return tuple(one.args)


def asked(condition: Any, known: Known) -> Limits:
    """Below what a condition says that axes are. known: by buffers."""
    if isinstance(condition, tirx.And) or operator(condition) == "bitwise_and":
        a, b = (condition.a, condition.b) if isinstance(condition, tirx.And) else condition.args
        return {**asked(a, known), **asked(b, known)}
    if isinstance(condition, tirx.Cast):
        return asked(condition.value, known)
    if isinstance(condition, tirx.LT) and _is_zero(condition.a):
        return asked(condition.b, known)
    if isinstance(condition, tirx.NE) and _is_zero(condition.b):
        return asked(condition.a, known)
    if isinstance(condition, tvm.ir.TensorLoad):
        pairs = known.masks.get(condition.source, ())
        return {(condition.indices[at], 0): bound for at, bound in pairs if _is_var(condition, at)}
    return _below(condition, known)


def _below(condition: Any, known: Known) -> Limits:
    """Of `places[.., i, ..] < number`."""
    sides = [condition.a, condition.b] if isinstance(condition, tirx.LT) else []
    if not all(isinstance(one, tvm.ir.TensorLoad) for one in sides) or not sides:
        return {}
    place, number = sides
    axis, var = known.places.get(place.source), known.numbers.get(number.source)
    if axis is None or var is None or not _is_var(place, axis):
        return {}
    return {(place.indices[axis], 0): Bound.of(var)}


def held_below(index: Any, known: Known) -> Bound | None:
    """Below what an index is computed to be; None where it is not.

    `min(.., n - 1)`, also if it is not below zero, and `.. % n`.
    """
    if isinstance(index, tirx.Max) and _is_zero(index.b):
        return held_below(index.a, known)
    if isinstance(index, tirx.Mod):
        return _number(index.b, known)
    sides = (index.a, index.b) if isinstance(index, tirx.Min) else ()
    return next(filter(None, (_number(one + 1, known) for one in sides)), None)


def _number(value: Any, known: Known) -> Bound | None:
    plain = sym.Analyzer().simplify(value)
    var = known.numbers.get(plain.source) if isinstance(plain, tvm.ir.TensorLoad) else None
    return None if var is None else Bound.of(var)


def _is_var(load: Any, axis: int) -> bool:
    return isinstance(load.indices[axis], tirx.Var)


def _is_zero(value: Any) -> bool:
    return isinstance(value, tirx.IntImm) and int(value) == 0
