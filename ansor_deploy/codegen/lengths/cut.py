"""Guard loops so that they skip the steps whose results nothing needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

from ..._tvm import structural_equal, structural_map, tirx, uses
from ...marks.matrix_tiles import MATRIX
from ...marks.partial_lanes import PARTIAL_LANES
from ...marks.turned_tiles import TURNED
from ..blocks import Leaf, at_begin, outside, within
from .asked import Limits
from .packed import packed
from .places import Ends
from .small_tiles import Own, Rows, allocated, in_small_tiles, own_buffers

_LONG = 64  # steps of an innermost loop that are worth an end
_WHOLE = (tirx.ForKind.SERIAL, tirx.ForKind.PARALLEL)


class _Start(NamedTuple):
    """The first index of an axis in a step of a loop.

    behind: the block's index minus the first one. most: the largest that `behind` gets.
    """

    first: Any
    behind: Any
    most: int


class _First(NamedTuple):
    """The first index of an axis in a step of a loop, and the bound below which it is needed.

    rest: the most that other indices of the step exceed it. modulo: the bound is of
    `index % modulo`; 0 where it is of the index itself. bound: a Bound or Places. behind: for each
    block, its index minus the first one; None where the block stores no row at that index.
    """

    index: Any
    rest: int
    modulo: int
    bound: Any
    behind: tuple[Any, ...]

    def condition(self, numbers: Mapping[Any, Any]) -> Any:
        """Whether any element of the step is needed."""
        bound = self.bound.expression(numbers)
        if not self.modulo:
            return self.index < bound
        at = tirx.floormod(self.index, self.modulo)
        return tirx.Or(at < bound, at >= self.modulo - self.rest)  # or a row begins in it


def cut(
    body: Any, found: Sequence[Leaf], limits: Sequence[Limits], numbers: Mapping[Any, Any]
) -> Any | None:
    """A function's body whose loops skip what is not needed; None where no loop can skip anything.

    found: its leaves. limits: those of the axes of each leaf. numbers: the position and the
    expression of each variable in these limits.
    """
    guards: dict[Any, _Guard] = {}
    parts: dict[Any, Any] = {}
    body, leaves_, ends = packed(body, found, limits, numbers)
    every = list(zip(leaves_, ends, strict=True))
    for loop in _loops(leaves_):
        inside = [(leaf, limit) for leaf, limit in every if _is_in(loop, leaf)]
        firsts = [list(_firsts(loop, *one)) for one in inside]
        if loop.kind in _WHOLE and (shared := list(_shared(firsts))):
            blocks, own = [leaf for leaf, _ in inside], partial(own_buffers, body, loop)
            guards[loop.loop_var] = _Guard.of(shared, blocks, numbers, own)
        elif all(firsts):
            guards[loop.loop_var] = _Guard.of_any(firsts, numbers)
        else:
            parts |= _parts(loop, inside, firsts, numbers)
    if not guards and not parts:
        return None
    made = structural_map(body, (tirx.For, lambda loop: _in_part(_guarded(loop, guards), parts)))
    small = [one for guard in guards.values() for own in guard.own for one in own.values()]
    return allocated(made, small)


class _Guard(NamedTuple):
    """The guard of a loop's steps.

    condition: whether a step is needed. rows: the rows of a tile and their end, where the last tile
    may have few rows; else None. own: the buffers of each size of small tiles.
    """

    condition: Any
    rows: tuple[Rows, Any] | None
    own: Sequence[Own]

    @classmethod
    def of(
        cls,
        firsts: Sequence[_First],
        found: Sequence[Leaf],
        numbers: Mapping[Any, Any],
        own: Callable[[Rows], Sequence[Own]],
    ) -> _Guard:
        """The guard where a loop's blocks begin alike. found: these blocks. own: finds `own`."""
        condition = reduce(tirx.And, (one.condition(numbers) for one in firsts))
        loops = [leaf.loops for leaf in found]
        rows = ((Rows.of(one.index, one.behind, loops), one.bound) for one in firsts)
        fused = any(one.modulo for one in firsts)  # rows fused with columns have no small tiles
        tiles = ((one, bound.expression(numbers)) for one, bound in rows if one and not fused)
        chosen = next(tiles, None)
        return cls(condition, chosen, own(chosen[0]) if chosen else ())

    @classmethod
    def of_any(cls, firsts: Sequence[Sequence[_First]], numbers: Mapping[Any, Any]) -> _Guard:
        """The guard where a loop's blocks begin differently: a step is done if any needs it."""
        found: list[Any] = []
        for first in firsts:
            one = reduce(tirx.And, (one.condition(numbers) for one in first))
            if not any(structural_equal(one, other) for other in found):
                found.append(one)
        return cls(reduce(tirx.Or, found), None, ())


def _parts(
    loop: Any,
    inside: Sequence[tuple[Leaf, Ends]],
    firsts: Sequence[Sequence[_First]],
    numbers: Mapping[Any, Any],
) -> dict[Any, Any]:
    """Conditions of the loops right inside one that has to go on, by their variables.

    Such as of sums whose epilogue stores zeros where nothing is needed.
    """
    groups: dict[Any, list[Sequence[_First]]] = {}
    for (leaf, _), first in zip(inside, firsts, strict=True):
        at = next(k for k, one in enumerate(leaf.loops) if one.same_as(loop))
        if at + 1 < len(leaf.loops):
            groups.setdefault(leaf.loops[at + 1].loop_var, []).append(first)
    needed = {var: some for var, some in groups.items() if all(some)}
    return {var: _Guard.of_any(some, numbers).condition for var, some in needed.items()}


def _in_part(loop: Any, parts: Mapping[Any, Any]) -> Any:
    condition = parts.get(loop.loop_var)
    return loop if condition is None else tirx.IfThenElse(condition, loop, None)


def grain(leaf: Leaf, var: Any, every: Sequence[Leaf]) -> int | None:
    """How many steps of an axis are skipped together, if its loops can skip any; else None.

    every: the leaves of the function. A loop that contains others of them may have to go on.
    """
    sizes = []
    for loop in _loops([leaf]):
        if sum(_is_in(loop, one) for one in every) > 1:
            continue
        marked = (loop.annotations or {}).get(PARTIAL_LANES)
        lanes = int(str(marked).split("x")[-1]) if marked else 0
        sizes += [lanes or one.most + 1 for one in _starts(loop, leaf, var)]
    return min(sizes, default=None)


def _loops(found: Sequence[Leaf]) -> Iterator[Any]:
    """The loops whose body may be skipped: serial or parallel ones, also all around them.

    Of the innermost ones only long ones, such as one over a row of an image of one channel.
    Tiles that are turned in registers, and rows and columns of matrix registers, are computed
    whole. Of unrolled loops those over tiles, which contain several blocks. In small tiles, too,
    each of their steps would be code of its own.
    """
    seen: list[Any] = []
    for leaf in found:
        for at, loop in enumerate(leaf.loops):
            tiles = loop.kind == tirx.ForKind.UNROLLED and _has_several(loop, found)
            marks = loop.annotations or {}
            skipped = loop.kind in _WHOLE or tiles
            if not skipped or TURNED in marks or _is_of_matrix(loop, leaf):
                break
            inner = at + 1 < len(leaf.loops) or PARTIAL_LANES in marks or _is_long(loop)
            if inner and not _is_one(loop) and not any(loop.same_as(one) for one in seen):
                seen.append(loop)
                yield loop


def _is_of_matrix(loop: Any, leaf: Leaf) -> bool:
    """Whether a loop is over rows or columns of matrix registers."""
    inner = loop.body
    while isinstance(inner, tirx.For):
        if MATRIX in (inner.annotations or {}):
            stored = (outside(index, leaf.realize) for index in leaf.block.body.indices)
            return any(uses(index, loop.loop_var) for index in stored)
        inner = inner.body
    return False


def _has_several(loop: Any, found: Sequence[Leaf]) -> bool:
    return sum(_is_in(loop, leaf) for leaf in found) > 1


def _is_one(loop: Any) -> bool:
    return isinstance(loop.extent, tirx.IntImm) and int(loop.extent) == 1


def _is_long(loop: Any) -> bool:
    return isinstance(loop.extent, tirx.IntImm) and int(loop.extent) >= _LONG


def _is_in(loop: Any, leaf: Leaf) -> bool:
    return any(loop.same_as(one) for one in leaf.loops)


def _firsts(loop: Any, leaf: Leaf, limits: Ends) -> Iterator[_First]:
    """The first index in a step of a loop, for each limited axis of a block that it moves along."""
    for (var, modulo), bound in limits.items():
        row = not modulo and any(uses(index, var) for index in leaf.block.body.indices)
        for one in _starts(loop, leaf, var):
            yield _First(one.first, one.most, modulo, bound, (one.behind if row else None,))


def _starts(loop: Any, leaf: Leaf, var: Any) -> Iterator[_Start]:
    """The first index of an axis in a step of a loop; nothing where that is unknown."""
    at = next(k for k, one in enumerate(leaf.loops) if one.same_as(loop))
    analyzer = within(leaf.loops)
    index = outside(var, leaf.realize)
    first = analyzer.simplify(at_begin(index, leaf.loops[at + 1 :]))
    behind = analyzer.simplify(index - first)
    reach = analyzer.const_int_bound(behind)
    if uses(first, loop.loop_var) and reach.min_value >= 0:
        yield _Start(first, behind, int(reach.max_value))


def _shared(firsts: Sequence[Sequence[_First]]) -> Iterator[_First]:
    """The first indices that all blocks of a loop share, with the largest bound of any block."""
    for first in firsts[0]:
        alike = [next((one for one in some if _are_alike(one, first)), None) for some in firsts]
        found = [one for one in alike if one is not None]
        if len(found) == len(alike):
            bound = reduce(lambda one, other: one.or_more(other), (one.bound for one in found))
            rest = max(one.rest for one in found)
            behind = tuple(place for one in found for place in one.behind)
            yield first._replace(rest=rest, bound=bound, behind=behind)


def _are_alike(one: _First, other: _First) -> bool:
    same = one.modulo == other.modulo and type(one.bound) is type(other.bound)
    return same and structural_equal(one.index, other.index)


def _guarded(loop: Any, guards: Mapping[Any, _Guard]) -> Any:
    """A loop whose steps are under their guard; other loops as they are."""
    guard = guards.get(loop.loop_var)
    if guard is None:
        return loop
    body = in_small_tiles(loop.body, *guard.rows, guard.own) if guard.rows else loop.body
    kept = (loop.thread_binding, loop.annotations, loop.step, loop.span)
    inside = tirx.IfThenElse(guard.condition, body, None)
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, inside, *kept)
