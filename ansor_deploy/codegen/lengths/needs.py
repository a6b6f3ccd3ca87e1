"""Find the part of its inputs that a kernel needs, given the needed part of its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from ..._tvm import collect, structural_equal, structural_map, sym, tirx, tvm
from ..blocks import Leaf, leaves
from .asked import (
    QUOTIENTS,
    RESTS,
    Known,
    Limits,
    Read,
    held_below,
    indices_asked,
    is_quotient,
    limits_of,
    reads,
)
from .behind import summed_up
from .bound import Bound, Needed, joined
from .cut import grain
from .tensors import note_all_behind

_FAR = 1 << 30  # an index beyond any that is known


class Needs:
    """The needs of one function, found by walking its blocks from the last to the first.

    of: the needed part of each buffer. read: the buffers that are read. leaves: the blocks. limits:
    for each block, the limits of its axes below which something is needed.
    """

    def __init__(self, func: tirx.PrimFunc, known: Known, wanted: Mapping[Any, Needed]) -> None:
        self.of: dict[Any, Needed] = dict(wanted)
        self.read: set[Any] = set()
        self.leaves = list(leaves(func.body))
        self._known = known
        note_all_behind(self.leaves, known)
        self._late = True
        while self._late:  # a block may read what a later block of the same loop stored
            self._late, self._seen = False, set[Any]()
            backwards = [self._passed_on(leaf) for leaf in reversed(self.leaves)]
        self.limits: list[Limits] = backwards[::-1]

    def _passed_on(self, leaf: Leaf) -> Limits:
        """Note what a block needs, and return the limits of its axes."""
        store = leaf.block.body
        self._seen.add(store.buffer)
        needed = self.of.get(store.buffer, {})
        limits = {
            key: bound
            for (axis, modulo), whole in needed.items()
            for key, bound in limits_of(store.indices[axis], modulo, whole)
        }
        axes, read_below = _Axes(leaf, self._known), dict(limits)
        for place, bound in summed_up(leaf, self._known):
            if (together := grain(leaf, place, self.leaves)) is not None:
                # The last group of steps reads beyond the bound, which changes nothing.
                limits[place, 0] = bound
                read_below[place, 0] = bound.divided(together).scaled(together, 0)
        for value in (store.value, *store.indices):
            for read in reads(value, self._known, read_below):
                source = read.load.source
                self.read.add(source)
                wanted = joined(self.of.get(source), axes.needed(read))
                self._late |= source in self._seen and wanted != self.of.get(source)
                self.of[source] = wanted
        return limits


class _Axes:
    """Finds the part of a tensor that a load of a block needs along each axis."""

    def __init__(self, leaf: Leaf, known: Known) -> None:
        self._analyzer, self._known = sym.Analyzer(), known
        for axis in leaf.block.iter_vars:
            self._analyzer.bind(axis.var, axis.dom)

    def needed(self, read: Read) -> Needed:
        """The needed part of the tensor of a load."""
        with ExitStack() as stack:
            for one in filter(_is_of_indices, read.conditions):
                plain = self._analyzer.simplify(one)  # the analyzer takes in no negation as it is
                stack.enter_context(self._analyzer.constraint_scope(plain))
            indices = list(map(self._analyzer.simplify, read.load.indices))
            found = dict(self._of_indices(indices, read.limits))
            asked = dict(self._asked_of(indices, read.conditions))
        return {**found, **asked}

    def _asked_of(
        self, indices: Sequence[Any], conditions: Sequence[Any]
    ) -> Iterator[tuple[tuple[int, int], Bound]]:
        """The bounds below which conditions keep the simplified indices of a load themselves."""
        for one in conditions:
            for index, bound in indices_asked(one, self._known):
                plain = self._analyzer.simplify(index)
                for axis, own in enumerate(indices):
                    if structural_equal(own, plain):
                        yield (axis, 0), bound

    def _of_indices(
        self, indices: Sequence[Any], limits: Limits
    ) -> Iterator[tuple[tuple[int, int], Bound]]:
        for axis, index in enumerate(indices):
            if (bound := self._bound(index, limits)) is not None:
                yield (axis, 0), bound
            for modulo in self._moduli(index, limits):
                rest = self._analyzer.simplify(tirx.floormod(index, modulo))
                if (bound := self._bound(rest, limits)) is not None:
                    yield (axis, modulo), bound

    def _moduli(self, index: Any, limits: Limits) -> set[int]:
        """Moduli of an index that combines rows with positions in them."""
        own = {by for var, by in limits if by and index.same_as(var)}
        reaches = (self._reach(index, part) for part, _ in _parts(index, limits))
        return own | {reach[0] for reach in reaches if reach and reach[0] > 1}

    def _bound(self, index: Any, limits: Limits) -> Bound | None:
        """The bound below which an index is; None where it is not limited."""
        if (held := held_below(index, self._known)) is not None:
            return held
        reaches = ((bound, self._reach(index, part)) for part, bound in _parts(index, limits))
        found = next(((bound, reach) for bound, reach in reaches if reach), None)
        if found is None:
            return None
        bound, (factor, rest) = found
        # The index of the last part below the bound, and what is read beyond that.
        return bound.scaled(factor, rest + 1 - factor)

    def _reach(self, index: Any, part: Any) -> tuple[int, int] | None:
        """(factor, most) where an index is at most `factor * part + most`; None where it is not."""
        if isinstance(index, tirx.Var):
            return (1, 0) if index.same_as(part) else None
        var = part
        if not isinstance(part, tirx.Var):
            var = tirx.Var("part", part.ty)
            index = structural_map(index, (type(part), partial(_in_place, part, var)))
        linear = sym.detect_linear_equation(index, [var])
        if len(linear) != 2 or not isinstance(linear[0], tirx.IntImm) or int(linear[0]) < 1:
            return None
        most = int(self._analyzer.const_int_bound(linear[1]).max_value)
        return (int(linear[0]), most) if abs(most) < _FAR else None


def _is_of_indices(condition: Any) -> bool:
    """Whether a condition is of indices alone. What tensors hold tells an analyzer nothing of them.

    A number that is divided seven times is an expression that takes minutes to simplify.
    """
    return not collect(condition, tvm.ir.TensorLoad)


def _parts(index: Any, limits: Limits) -> Iterator[tuple[Any, Bound]]:
    """The limited parts of an index, with bounds: variables, and their quotients and remainders."""
    for (var, modulo), bound in limits.items():
        if not modulo:
            yield var, bound
    if isinstance(index, tirx.Var):  # the usual case
        return
    divided = collect(index, *QUOTIENTS, *RESTS)
    for one in (one for kind in (*QUOTIENTS, *RESTS) for one in divided if type(one) is kind):
        (given, more), by = _shifted(one.a), one.b
        for (var, modulo), bound in limits.items():
            if not given.same_as(var) or not isinstance(by, tirx.IntImm):
                continue
            if is_quotient(one) and not modulo:
                yield one, bound.scaled(1, more).divided(int(by))
            elif not is_quotient(one) and modulo == int(by) and not more:
                yield one, bound


def _shifted(index: Any) -> tuple[Any, int]:
    """The variable and the constant of `v + 3`; an index alone, and 0, for other expressions."""
    more = index.b if isinstance(index, tirx.Add) else None
    return (index.a, int(more)) if isinstance(more, tirx.IntImm) and int(more) > 0 else (index, 0)


def _in_place(part: Any, var: Any, one: Any) -> Any:
    return var if structural_equal(one, part) else one
