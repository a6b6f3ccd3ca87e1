"""Read which indices a condition keeps below a number: elements beyond that do not count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..._tvm import collect, op_name, structural_equal, structural_map, sym, tirx, tvm
from .bound import Bound

# Upper limits of a block's axes: (variable, modulus) -> bound. The bound is that of
# `variable % modulus`, or of the variable itself where the modulus is 0.
Limits = Mapping[tuple[Any, int], Bound]
# Divisions. Both kinds give the same for axes, which are not negative.
QUOTIENTS = (tirx.FloorDiv, tirx.Div)
# Remainders. Both kinds give the same for axes, which are not negative.
RESTS = (tirx.FloorMod, tirx.Mod)


@dataclass
class Known:
    """What is known of tensors, by their buffers in a kernel, or by their Relax variables.

    numbers: tensors that hold one number, each with its bound in terms of other numbers.
    places: tensors whose elements are their own indices along an axis, with that axis.
    masks: tensors of booleans that are true where indices are below bounds: the axes and bounds.
    values: tensors that hold one known constant.
    behind: tensors that have a known value from a bound on: by axis, the bound and that value.
    below: tensors of places that are all below a bound, with that bound.
    """

    numbers: dict[Any, Bound] = field(default_factory=dict)
    places: dict[Any, int] = field(default_factory=dict)
    masks: dict[Any, tuple[tuple[int, Bound], ...]] = field(default_factory=dict)
    values: dict[Any, float] = field(default_factory=dict)
    behind: dict[Any, dict[int, tuple[Bound, float]]] = field(default_factory=dict)
    below: dict[Any, Bound] = field(default_factory=dict)

    def forget(self, tensors: Iterable[Any]) -> None:
        """Forget what these tensors hold."""
        for one in tensors:
            for known in (self.numbers, self.masks, self.behind, self.below):
                known.pop(one, None)


class Read(NamedTuple):
    """A load, with the limits of axes and the conditions that hold where it is needed."""

    load: Any
    limits: Limits
    conditions: tuple[Any, ...]


def reads(
    value: Any,
    known: Known,
    limits: Limits,
    conditions: tuple[Any, ...] = (),
    above: list[Any] | None = None,
) -> Iterator[Read]:
    """The loads in a value, each at its fewest conditions.

    limits, conditions: those that hold where the value is needed. above: loads found under these
    conditions, to which this adds; a branch that makes no others needs nothing more. A number that
    is rounded seven times is thousands of branches, all of the same load.
    """
    above = [] if above is None else above
    choices: list[Any] = []

    def choice(one: Any) -> Any:
        if not is_choice(one):
            return one
        choices.append(one)
        return tirx.const(0, str(one.ty.dtype))

    rest = structural_map(value, ((tirx.Select, tvm.ir.Call), choice), order="pre")
    for load in collect(rest, tvm.ir.TensorLoad):
        if not _is_one_of(above, load):
            above.append(load)
            yield Read(load, limits, conditions)
    for one in choices:
        if all(_is_one_of(above, load) for load in collect(one, tvm.ir.TensorLoad)):
            continue
        condition, yes, no = parts(one)
        yield from reads(condition, known, limits, conditions, above)
        below = {**limits, **asked(condition, known)}
        yield from reads(yes, known, below, (*conditions, condition), [*above])
        yield from reads(no, known, limits, (*conditions, tirx.Not(condition)), [*above])


def _is_one_of(found: Sequence[Any], load: Any) -> bool:
    return any(structural_equal(load, one) for one in found)


def is_choice(one: Any) -> bool:
    """Whether an expression selects one of two values by a condition."""
    return isinstance(one, tirx.Select) or operator(one) == "if_then_else"


def operator(one: Any) -> str:
    """The name of the operator that an expression calls, without its namespace; else ""."""
    return op_name(one).rpartition(".")[2]


def parts(one: Any) -> tuple[Any, Any, Any]:
    """The condition of a choice, its value where that holds, and its value elsewhere."""
    if isinstance(one, tirx.Select):
        return one.condition, one.true_value, one.false_value
    return tuple(one.args)


def asked(condition: Any, known: Known) -> Limits:
    """The limits of axes where a condition holds. known: by buffers."""
    pairs = indices_asked(condition, known)
    return {key: limit for index, bound in pairs for key, limit in limits_of(index, 0, bound)}


def indices_asked(condition: Any, known: Known) -> list[tuple[Any, Bound]]:
    """The indices that are below bounds where a condition holds, with these. known: by buffers."""
    if sides := joined_by_and(condition):
        return [pair for one in sides for pair in indices_asked(one, known)]
    if (plain := unwrapped(condition)) is not condition:
        return indices_asked(plain, known)
    if isinstance(condition, tvm.ir.TensorLoad):
        pairs = known.masks.get(condition.source, ())
        return [(condition.indices[at], bound) for at, bound in pairs]
    return _below(condition, known)


def joined_by_and(condition: Any) -> Sequence[Any]:
    """The two conditions that an `and`, of bits too, joins; none for other conditions."""
    if isinstance(condition, tirx.And):
        return condition.a, condition.b
    return condition.args if operator(condition) == "bitwise_and" else ()


def unwrapped(condition: Any) -> Any:
    """What a condition asks in the form of a number: c for `0 < int64(c)` and `c != 0`."""
    if isinstance(condition, tirx.Cast):
        return unwrapped(condition.value)
    if isinstance(condition, tirx.LT) and _is_zero(condition.a):
        return unwrapped(condition.b)
    if isinstance(condition, tirx.NE) and _is_zero(condition.b):
        return unwrapped(condition.a)
    return condition


def _below(condition: Any, known: Known) -> list[tuple[Any, Bound]]:
    """The index and its bound for `places[.., i, ..] < number`, or for `i < number`."""
    bound = number_of(condition.b, known) if isinstance(condition, tirx.LT) else None
    if bound is None:
        return []
    place = condition.a
    if not isinstance(place, tvm.ir.TensorLoad):
        return [(place, bound)]
    axis = known.places.get(place.source)
    return [] if axis is None else [(place.indices[axis], bound)]


def limits_of(index: Any, modulo: int, bound: Bound) -> Iterator[tuple[tuple[Any, int], Bound]]:
    """The limit of an axis v for an index `v`, `v // 8`, `v % 8`, or `v * 8 + phase`.

    bound: the limit of `index % modulo`, or of the index where `modulo` is 0.
    """
    if isinstance(index, tirx.Var):
        yield (index, modulo), bound
    elif not modulo and (part := part_of(index)):
        var, by = part
        yield ((var, 0), bound.scaled(by, 0)) if is_quotient(index) else ((var, by), bound)
    elif not modulo and (group := _group_of(index)):
        var, size = group
        yield (var, 0), bound.divided(size)


def part_of(value: Any) -> tuple[Any, int] | None:
    """The variable and the divisor of `v // 8` or `v % 8`; None for other expressions."""
    if not isinstance(value, (*QUOTIENTS, *RESTS)):
        return None
    plain = isinstance(value.a, tirx.Var) and isinstance(value.b, tirx.IntImm)
    return (value.a, int(value.b)) if plain else None


def _group_of(index: Any) -> tuple[Any, int] | None:
    """The variable and the factor of `v * 8`, or of `v * 8` plus axes and positive constants."""
    if isinstance(index, tirx.Add):
        more = int(index.b) if isinstance(index.b, tirx.IntImm) else 0
        known = isinstance(index.b, (tirx.Var, tirx.IntImm)) and more >= 0
        return _group_of(index.a) if known else None
    if not isinstance(index, tirx.Mul) or not isinstance(index.a, tirx.Var):
        return None
    by = int(index.b) if isinstance(index.b, tirx.IntImm) else 0
    return (index.a, by) if by > 0 else None


def is_quotient(value: Any) -> bool:
    """Whether an expression is a division."""
    return isinstance(value, QUOTIENTS)


def held_below(index: Any, known: Known) -> Bound | None:
    """The bound that an index's own expression keeps it below; None where there is none.

    That is n for `min(.., n - 1)`, also inside `max(.., 0)`, for `.. % n`, and for places that are
    below n.
    """
    if isinstance(index, tirx.Cast):
        return held_below(index.value, known)
    if isinstance(index, tvm.ir.TensorLoad):
        return known.below.get(index.source)
    if isinstance(index, tirx.Max) and (_is_zero(index.a) or _is_zero(index.b)):
        return held_below(index.a if _is_zero(index.b) else index.b, known)
    if isinstance(index, tirx.Mod):
        return _number(index.b, known)
    sides = (index.a, index.b) if isinstance(index, tirx.Min) else ()
    held = (_number(one + 1, known) or held_below(one, known) for one in sides)
    return next(filter(None, held), None)


def _number(value: Any, known: Known) -> Bound | None:
    plain = sym.Analyzer().simplify(value)
    while isinstance(plain, tirx.Cast):
        plain = plain.value
    return known.numbers.get(plain.source) if isinstance(plain, tvm.ir.TensorLoad) else None


def _is_zero(value: Any) -> bool:
    return isinstance(value, tirx.IntImm) and int(value) == 0


def number_of(value: Any, known: Known) -> Bound | None:
    """A bound that a number equals, or is a little less than; None where there is none."""
    if isinstance(value, tvm.ir.TensorLoad):
        return known.numbers.get(value.source)
    if isinstance(value, tirx.Cast):
        return number_of(value.value, known)
    kinds = (tirx.Add, tirx.Sub, tirx.Mul, *QUOTIENTS)
    found = number_of(value.a, known) if isinstance(value, kinds) else None
    by = None if found is None else _constant(value.b, known)
    return None if found is None or by is None else _changed(found, type(value), by)


def _changed(found: Bound, kind: Any, by: int) -> Bound | None:
    if kind in (tirx.Add, tirx.Sub):
        return found.scaled(1, by if kind is tirx.Add else -by)
    if by <= 0:
        return None
    return found.scaled(by, 0) if kind is tirx.Mul else found.floored(by)


def _constant(value: Any, known: Known) -> int | None:
    if isinstance(value, tirx.IntImm):
        return int(value)
    given = known.values.get(value.source) if isinstance(value, tvm.ir.TensorLoad) else None
    return None if given is None else int(given)
