"""Collect what is known of the tensors of a model's function before any kernel is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._tvm import (
    collect,
    elements,
    op_name,
    relax,
    shape_of,
    structural_equal,
    structural_map,
    sym,
    tirx,
    tvm,
)
from ...model.operators.counted_places import IS_BELOW
from ..blocks import Leaf, leaves
from ..kernels.signature import written
from ..memory.in_place import is_kernel
from .asked import Known, indices_asked
from .behind import ends, note_behind
from .bound import Bound
from .scalars import note_numbers


class Tensors:
    """The tensors of a function, by the variables that they were first bound to.

    made_at: the position of the binding that writes each tensor; -1 for parameters.
    """

    def __init__(self, main: relax.Function, bindings: Sequence[Any], mod: tvm.IRModule) -> None:
        self.made_at: dict[Any, int] = dict.fromkeys(main.params, -1)
        self._mod, self._known = mod, Known()
        self._same: dict[Any, Any] = {}
        self._plain: dict[str, bool] = {}
        self._written: set[Any] = set()
        for at, binding in enumerate(bindings):
            self._note(at, binding)

    def tensor(self, var: Any) -> Any:
        """The tensor that a variable stands for."""
        return self._same.get(var, var)

    def named(self, value: Any) -> set[Any]:
        """The tensors that an expression names."""
        return {self.tensor(one) for one in collect(value, relax.Var)}

    def number(self, var: Any) -> Bound:
        """The bound of a tensor's number in terms of the numbers that are known first."""
        tensor = self.tensor(var)
        return self._known.numbers.get(tensor) or Bound.of(tensor)

    def in_order(self, tensors: Iterable[Any]) -> list[Any]:
        """Each tensor once, in the order of the bindings that first made them; parameters first."""
        places = {one: place for place, one in enumerate(self.made_at)}
        return sorted(set(tensors), key=places.__getitem__)

    def is_plain(self, call: Any) -> bool:
        """Whether a call is of a kernel that only stores elements in blocks."""
        if not is_kernel(call):
            return False
        name = call.op.name_hint
        if name not in self._plain:
            self._plain[name] = _is_plain(self._mod[call.op])
        return self._plain[name]

    def within(self, call: Any) -> Known:
        """What is known of the tensors of a call, by the kernel's buffers."""
        inside = Known()
        for buffer, one in zip(self._mod[call.op].params, call.args, strict=True):
            if isinstance(one, relax.Var):
                self._tell(inside, buffer, one)
            elif (axis := _places(one)) is not None:
                inside.places[buffer] = axis
            elif shape_of(one.ty) in ((), (1,)):
                inside.values[buffer] = float(elements(one).reshape(-1)[0])
        note_numbers(list(leaves(self._mod[call.op].body)), inside)
        return inside

    def _tell(self, inside: Known, buffer: Any, one: Any) -> None:
        tensor = self.tensor(one)
        scalar = not shape_of(buffer) and str(buffer.dtype) == "int64"
        if scalar or tensor in self._known.numbers:
            inside.numbers[buffer] = self.number(tensor)
        if tensor in self._known.masks:
            inside.masks[buffer] = self._known.masks[tensor]
        if tensor in self._known.behind:
            inside.behind[buffer] = self._known.behind[tensor]
        if tensor in self._known.below:
            inside.below[buffer] = self._known.below[tensor]

    def _note(self, at: int, binding: Any) -> None:
        value = binding.value
        self.made_at.setdefault(binding.var, at)
        if isinstance(value, relax.Var):
            self._same[binding.var] = self.tensor(value)
        elif is_kernel(value):
            func = self._mod[value.op]
            made = {self.tensor(value.args[place]) for place in written(func)}
            self.made_at |= dict.fromkeys(made, at)
            again, self._written = made & self._written, self._written | made
            if again:  # what is known of a part of a tensor is not true of all of it
                self._known.forget(again)
            elif self.is_plain(value):
                self._note_made(value, func)
            elif IS_BELOW in (func.attrs or {}):
                bound = self.number(value.args[int(func.attrs[IS_BELOW])])
                self._known.below |= dict.fromkeys(made, bound)

    def _note_made(self, call: Any, func: Any) -> None:
        """Note what is known of a kernel's results: numbers, masks, and values behind bounds."""
        inside, every = self.within(call), list(leaves(func.body))
        note_all_behind(every, inside)
        for place in written(func):
            buffer, tensor = func.params[place], self.tensor(call.args[place])
            if (found := inside.behind.get(buffer)) is not None:
                self._known.behind[tensor] = found
            stores = [stored(leaf) for leaf in every if leaf.block.body.buffer.same_as(buffer)]
            if buffer in inside.numbers:
                self._known.numbers[tensor] = inside.numbers[buffer]
            if len(stores) != 1:
                continue
            if masks := tuple(_masks(stores[0], inside)):
                self._known.masks[tensor] = masks


def note_all_behind(every: Sequence[Any], known: Known) -> None:
    """Note the values behind bounds, for the buffers that blocks store to."""
    found: dict[Any, list[Leaf]] = {}
    for leaf in every:
        found.setdefault(leaf.block.body.buffer, []).append(leaf)
    for some in found.values():
        if ends(some[-1].block.body.value, known):
            inits = [one for leaf in some if (one := leaf.block.init) is not None]
            note_behind([*inits, *map(stored, some)], known)


def stored(leaf: Leaf) -> Any:
    """What a block stores, with plain indices where a reshape left quotients of sums."""
    analyzer = sym.Analyzer()
    for axis in leaf.block.iter_vars:
        analyzer.bind(axis.var, axis.dom)

    def load(one: Any) -> Any:
        return tirx.BufferLoad(one.source, list(map(analyzer.simplify, one.indices)))

    store = structural_map(leaf.block.body, (tvm.ir.TensorLoad, load))
    return tirx.BufferStore(store.buffer, store.value, list(map(analyzer.simplify, store.indices)))


def _masks(store: Any, known: Known) -> Iterator[tuple[int, Bound]]:
    """The axes along which stored booleans are true only below a bound, and these bounds."""
    if str(store.buffer.dtype) == "bool":
        for index, bound in indices_asked(store.value, known):
            places = enumerate(store.indices)
            yield from ((at, bound) for at, one in places if structural_equal(one, index))


def _is_plain(func: tirx.PrimFunc) -> bool:
    """Whether a scheduled function only stores elements, each in a block of its own."""
    if not (func.attrs or {}).get("tirx.is_scheduled"):
        return False
    found = list(leaves(func.body))
    stores = sum(1 + (leaf.block.init is not None) for leaf in found)
    alone = all(isinstance(leaf.block.body, tirx.BufferStore) for leaf in found)
    if not alone or stores != len(collect(func.body, tirx.BufferStore)):
        return False
    calls = map(op_name, collect(func.body, tvm.ir.Call))
    return not any("address" in name or "access_ptr" in name or "call" in name for name in calls)


def _places(constant: Any) -> int | None:
    """The axis along which each element of a constant equals its index; None if there is none."""
    shape = shape_of(constant.ty)
    size = int(np.prod(shape, dtype=np.int64))
    if str(constant.ty.dtype) != "int64" or size < 2 or size not in shape:
        return None
    found = elements(constant).reshape(-1)
    return shape.index(size) if np.array_equal(found, np.arange(size)) else None
