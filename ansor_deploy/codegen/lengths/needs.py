"""What a kernel needs of what it reads, given what is needed of what it makes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from ..._tvm import sym, tirx
from ..blocks import Leaf, leaves
from .asked import Known, Limits, Read, reads
from .behind import summed_up
from .bound import Bound, Needed, joined
from .cut import grain
from .tensors import note_all_behind

_FAR = 1 << 30  # an index beyond any that is known


class Needs:
    """The needs of one function, whose blocks are gone through from the last to the first.

    of: by buffers, those that are needed. read: those that are read. leaves: its blocks. limits: of
    the axes of each, below what there is something that is needed.
    """

    def __init__(self, func: tirx.PrimFunc, known: Known, wanted: Mapping[Any, Needed]) -> None:
        self.of: dict[Any, Needed] = dict(wanted)
        self.read: set[Any] = set()
        self.leaves = list(leaves(func.body))
        self._known = known
        note_all_behind(self.leaves, known)
        before: dict[Any, Needed] | None = None
        while before != self.of:  # a loop may read what a later block of it stored
            before = dict(self.of)
            backwards = [self._passed_on(leaf) for leaf in reversed(self.leaves)]
        self.limits: list[Limits] = backwards[::-1]

    def _passed_on(self, leaf: Leaf) -> Limits:
        """Note what a block needs; what limits its axes."""
        store = leaf.block.body
        needed = self.of.get(store.buffer, {})
        limits = {
            index: needed[axis]
            for axis, index in enumerate(store.indices)
            if isinstance(index, tirx.Var) and axis in needed
        }
        axes, read_below = _Axes(leaf), dict(limits)
        for var, bound in summed_up(leaf, self._known):
            if (together := grain(leaf, var, self.leaves)) is not None:
                # What is left of the last of these is read, and changes nothing.
                limits[var], read_below[var] = bound, bound.scaled(1, together - 1)
        for value in (store.value, *store.indices):
            for read in reads(value, self._known, read_below):
                source = read.load.source
                self.read.add(source)
                self.of[source] = joined(self.of.get(source), axes.needed(read))
        return limits


class _Axes:
    """What a block reads along each axis."""

    def __init__(self, leaf: Leaf) -> None:
        self._analyzer = sym.Analyzer()
        for axis in leaf.block.iter_vars:
            self._analyzer.bind(axis.var, axis.dom)

    def needed(self, read: Read) -> Needed:
        """How much of each axis is needed."""
        with ExitStack() as stack:
            for one in read.conditions:
                plain = self._analyzer.simplify(one)  # of a negation nothing is taken in
                stack.enter_context(self._analyzer.constraint_scope(plain))
            places = enumerate(map(self._analyzer.simplify, read.load.indices))
            found = {axis: self._bound(index, read.limits) for axis, index in places}
        return {axis: bound for axis, bound in found.items() if bound}

    def _bound(self, index: Any, limits: Limits) -> Bound | None:
        """Below what an index is; None where it is not limited."""
        reaches = ((bound, self._reach(index, var)) for var, bound in limits.items())
        found = next(((bound, reach) for bound, reach in reaches if reach), None)
        if found is None:
            return None
        bound, (factor, rest) = found
        # The last of the first so many, and what is read behind it.
        return bound.scaled(factor, rest + 1 - factor)

    def _reach(self, index: Any, var: Any) -> tuple[int, int] | None:
        """An index as a factor of a variable, and the most that is added; None if it is none."""
        if isinstance(index, tirx.Var):
            return (1, 0) if index.same_as(var) else None
        linear = sym.detect_linear_equation(index, [var])
        if len(linear) != 2 or not isinstance(linear[0], tirx.IntImm) or int(linear[0]) < 1:
            return None
        most = int(self._analyzer.const_int_bound(linear[1]).max_value)
        return (int(linear[0]), most) if abs(most) < _FAR else None
