"""Loops without what nothing needs of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from ..._tvm import structural_equal, structural_map, tirx, uses
from ...marks.partial_lanes import PARTIAL_LANES
from ..blocks import Leaf, at_begin, outside, within
from .asked import Limits
from .bound import Bound

_WHOLE = (tirx.ForKind.SERIAL, tirx.ForKind.PARALLEL)


class _First(NamedTuple):
    """The first index that a step of a loop serves, the most it goes on, and below what it must be.

    modulo: by what it is taken; 0 where it is not.
    """

    index: Any
    rest: int
    modulo: int
    bound: Bound

    def condition(self, numbers: Mapping[Any, Any]) -> Any:
        """Whether anything of the step is needed."""
        bound = self.bound.expression(numbers)
        if not self.modulo:
            return self.index < bound
        at = tirx.floormod(self.index, self.modulo)
        return tirx.Or(at < bound, at >= self.modulo - self.rest)  # or a row begins in it


def cut(
    body: Any,
    found: Sequence[Leaf],
    limits: Sequence[Limits],
    numbers: Mapping[Any, Any],
) -> Any | None:
    """A function's body whose loops skip what is not needed; None where none can.

    found: its leaves. limits: of the axes of each. numbers: of each variable that a limit is of,
    its place among them, and the expression of it.
    """
    guards: dict[Any, Any] = {}
    every = list(zip(found, limits, strict=True))
    for loop in _loops(found):
        inside = [(leaf, limit) for leaf, limit in every if _is_in(loop, leaf)]
        firsts = [list(_firsts(loop, *one)) for one in inside]
        if shared := list(_shared(firsts)):
            guards[loop.loop_var] = _condition(shared, numbers)
    if not guards:
        return None
    return structural_map(body, (tirx.For, lambda loop: _guarded(loop, guards)))


def grain(leaf: Leaf, var: Any, every: Sequence[Leaf]) -> int | None:
    """How many steps of an axis are left out together, if its loops can be; else None.

    every: the leaves of the function: a loop with others in it may go on for these.
    """
    sizes = []
    for loop in _loops([leaf]):
        if sum(_is_in(loop, one) for one in every) > 1:
            continue
        marked = (loop.annotations or {}).get(PARTIAL_LANES)
        for _, rest in _starts(loop, leaf, var):
            sizes.append(math.prod(map(int, str(marked).split("x"))) if marked else rest + 1)
    return min(sizes, default=None)


def _loops(found: Sequence[Leaf]) -> Iterator[Any]:
    """The loops whose body may be left out: none that is unrolled or a vector, or in such a one."""
    seen: list[Any] = []
    for leaf in found:
        for at, loop in enumerate(leaf.loops):
            if loop.kind not in _WHOLE:
                break
            inner = at + 1 < len(leaf.loops) or PARTIAL_LANES in (loop.annotations or {})
            if inner and not _is_one(loop) and not any(loop.same_as(one) for one in seen):
                seen.append(loop)
                yield loop


def _is_one(loop: Any) -> bool:
    return isinstance(loop.extent, tirx.IntImm) and int(loop.extent) == 1


def _is_in(loop: Any, leaf: Leaf) -> bool:
    return any(loop.same_as(one) for one in leaf.loops)


def _firsts(loop: Any, leaf: Leaf, limits: Limits) -> Iterator[_First]:
    """For each limited axis of a block that a loop moves along: where a step of it begins."""
    for (var, modulo), bound in limits.items():
        for first, rest in _starts(loop, leaf, var):
            yield _First(first, rest, modulo, bound)


def _starts(loop: Any, leaf: Leaf, var: Any) -> Iterator[tuple[Any, int]]:
    """Where a step of a loop begins along an axis, and how far it goes; nothing if that is open."""
    at = next(k for k, one in enumerate(leaf.loops) if one.same_as(loop))
    analyzer = within(leaf.loops)
    index = outside(var, leaf.realize)
    first = analyzer.simplify(at_begin(index, leaf.loops[at + 1 :]))
    rest = analyzer.const_int_bound(analyzer.simplify(index - first))
    if uses(first, loop.loop_var) and rest.min_value >= 0:
        yield first, int(rest.max_value)


def _shared(firsts: Sequence[Sequence[_First]]) -> Iterator[_First]:
    """Where all blocks of a loop begin alike, with what any of them needs."""
    for first in firsts[0]:
        alike = [next((one for one in some if _are_alike(one, first)), None) for some in firsts]
        found = [one for one in alike if one is not None]
        if len(found) == len(alike):
            bound = reduce(Bound.or_more, (one.bound for one in found))
            yield first._replace(rest=max(one.rest for one in found), bound=bound)


def _are_alike(one: _First, other: _First) -> bool:
    return one.modulo == other.modulo and structural_equal(one.index, other.index)


def _condition(firsts: Sequence[_First], numbers: Mapping[Any, Any]) -> Any:
    return reduce(tirx.And, (first.condition(numbers) for first in firsts))


def _guarded(loop: Any, guards: Mapping[Any, Any]) -> Any:
    condition = guards.get(loop.loop_var)
    if condition is None:
        return loop
    kept = (loop.thread_binding, loop.annotations, loop.step, loop.span)
    inside = tirx.IfThenElse(condition, loop.body, None)
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, inside, *kept)
