"""Loops without what nothing needs of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from ..._tvm import structural_equal, structural_map, tirx, uses
from ...marks.partial_lanes import PARTIAL_LANES
from ..blocks import Leaf, at_begin, outside, within
from .asked import Limits
from .bound import Bound

_WHOLE = (tirx.ForKind.SERIAL, tirx.ForKind.PARALLEL)
_First = tuple[Any, Bound]  # the first index that a loop's body serves, and below what it must be


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
    for var, bound in limits.items():
        for first, _ in _starts(loop, leaf, var):
            yield first, bound


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
    for first, bound in firsts[0]:
        others = [
            next((own for at, own in some if structural_equal(at, first)), None)
            for some in firsts[1:]
        ]
        found = [one for one in others if one is not None]
        if len(found) == len(others):
            yield first, reduce(Bound.or_more, found, bound)


def _condition(firsts: Sequence[_First], numbers: Mapping[Any, Any]) -> Any:
    return reduce(tirx.And, (first < bound.expression(numbers) for first, bound in firsts))


def _guarded(loop: Any, guards: Mapping[Any, Any]) -> Any:
    condition = guards.get(loop.loop_var)
    if condition is None:
        return loop
    kept = (loop.thread_binding, loop.annotations, loop.step, loop.span)
    inside = tirx.IfThenElse(condition, loop.body, None)
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, inside, *kept)
