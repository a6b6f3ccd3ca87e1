"""Find tensors that hold one value wherever their elements do not count: a mask puts it there.

m = y < 8 n  (for each y) ; b = where(m, a, 0)          b: zero from 8 n on, else a
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..._tvm import relax, structural_equal, tirx, tvm
from ..blocks import leaves
from ..kernels.signature import written
from .asked import is_choice, joined_by_and, parts, unwrapped
from .tensors import Tensors, stored


class Number(NamedTuple):
    """How many elements count: the number that a tensor holds, times a constant."""

    tensor: Any
    times: int


Numbers = dict[int, Number]  # by axis


class Masked(NamedTuple):
    """A masked tensor. at: the position of the call that makes it. numbers: how much counts.

    value: what it holds elsewhere. source: the tensor that it is a masked copy of; None where its
    elements are computed.
    """

    at: int
    numbers: Numbers
    value: float
    source: Any


@dataclass(frozen=True)
class _Made:
    """A tensor that a call makes, by the one block that stores it."""

    tensor: Any
    store: Any
    arguments: Mapping[Any, Any]  # by the kernel's buffers
    is_alone: bool  # whether the kernel is this block

    def tensor_of(self, load: Any, tensors: Tensors) -> Any:
        return tensors.tensor(self.arguments.get(load.source))

    def axes(self, index: Any) -> list[int]:
        """The axes that the block stores at this index."""
        places = enumerate(self.store.indices)
        return [axis for axis, one in places if structural_equal(one, index)]


class Masks:
    """The masks of a function, and the tensors that these mask, as far as calls were noted."""

    def __init__(self, tensors: Tensors, mod: tvm.IRModule) -> None:
        self.masked: dict[Any, Masked] = {}
        self.numbers: dict[Any, Numbers] = {}  # of the masks themselves
        self._tensors, self._mod = tensors, mod

    def note(self, at: int, call: Any) -> None:
        """Note what a call makes. at: its position."""
        if (made := self._made(call)) is None:
            return
        if str(made.store.buffer.dtype) == "bool":
            if numbers := self._mask(made, made.store.value, self._tensors.within(call).places):
                self.numbers[made.tensor] = numbers
        elif is_choice(made.store.value):
            known = self._tensors.within(call)
            condition, _, other = parts(made.store.value)
            numbers = self._mask(made, condition, known.places)
            value = _constant(other, known.values)
            if numbers and value is not None:
                self.masked[made.tensor] = Masked(at, numbers, value, self._source(made))

    def _made(self, call: Any) -> _Made | None:
        func, (place, *others) = self._mod[call.op], written(self._mod[call.op])
        every = list(leaves(func.body))
        own = (leaf for leaf in every if leaf.block.body.buffer.same_as(func.params[place]))
        stores = list(map(stored, own))
        if others or len(stores) != 1:
            return None
        arguments = dict(zip(func.params, call.args, strict=True))
        tensor = self._tensors.tensor(call.args[place])
        return _Made(tensor, stores[0], arguments, len(every) == 1)

    def _mask(self, made: _Made, condition: Any, places: Mapping[Any, int]) -> Numbers:
        """The numbers below which indices are, exactly where a condition holds; else none."""
        found: Numbers = {}
        for one in _conjuncts(unwrapped(condition)):
            asked = self._asked(made, one) or self._below(made, one, places)
            if not asked or any(
                found.setdefault(axis, asked[axis]) != asked[axis] for axis in asked
            ):
                return {}
        return found

    def _below(self, made: _Made, condition: Any, places: Mapping[Any, int]) -> Numbers:
        """The axis and the number for `places[.., i, ..] < number`; none for other conditions."""
        place, asked = (condition.a, condition.b) if isinstance(condition, tirx.LT) else (0, 0)
        number, times = _product(asked)
        if not isinstance(place, tvm.ir.TensorLoad) or number is None or number.indices:
            return {}
        axis, tensor = places.get(place.source), made.tensor_of(number, self._tensors)
        axes = [] if axis is None else made.axes(place.indices[axis])
        alone = len(axes) == 1 and isinstance(tensor, relax.Var)
        return {axes[0]: Number(tensor, times)} if alone else {}

    def _asked(self, made: _Made, condition: Any) -> Numbers:
        """The numbers of the mask that a condition asks; none for other conditions."""
        load = unwrapped(condition)
        if not isinstance(load, tvm.ir.TensorLoad):
            return {}
        mask = self.numbers.get(made.tensor_of(load, self._tensors), {})
        axes = {axis: made.axes(load.indices[axis]) for axis in mask}
        if any(len(found) != 1 for found in axes.values()):
            return {}
        return {found[0]: mask[axis] for axis, found in axes.items()}

    def _source(self, made: _Made) -> Any:
        """The tensor of which another is a masked copy, if it is one."""
        _, value, _ = parts(made.store.value)
        if not made.is_alone or not isinstance(value, tvm.ir.TensorLoad):
            return None
        tensor = made.tensor_of(value, self._tensors)
        pairs = zip(value.indices, made.store.indices, strict=False)
        alike = len(value.indices) == len(made.store.indices)
        same = alike and all(structural_equal(*pair) for pair in pairs)
        return (
            tensor if same and isinstance(tensor, relax.Var) and tensor not in self.masked else None
        )


def _conjuncts(condition: Any) -> Iterator[Any]:
    """The conditions that all hold where this one does."""
    if not (sides := joined_by_and(condition)):
        yield condition
    for one in sides:
        yield from _conjuncts(one)


def _product(value: Any) -> tuple[Any, int]:
    """A load and the constant by which it is multiplied; None and 1 for other expressions."""
    if isinstance(value, tirx.Mul) and isinstance(value.b, tirx.IntImm):
        load, times = _product(value.a)
        return load, times * int(value.b)
    return (value, 1) if isinstance(value, tvm.ir.TensorLoad) else (None, 1)


def _constant(value: Any, known: Mapping[Any, float]) -> float | None:
    if isinstance(value, (tirx.FloatImm, tirx.IntImm)):
        return float(value.value)
    return known.get(value.source) if isinstance(value, tvm.ir.TensorLoad) else None
