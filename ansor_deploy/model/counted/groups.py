"""Reshapes of tensors with several counted axes, by groups of axes with as many elements.

[1, c, h, w] -> [1, c, h * w]        groups: 1 | 1, c | c, h w | h * w
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from ..operators.emitter import INT64
from ..operators.repacked import repack
from .known import Axes, Step
from .numbers import Number, Sum, least, most, multiplied, quotient

Group = tuple[list[Number], list[Number]]  # axes, and the axes that they become


def completed(sizes: Sequence[Number], dims: Sequence[Number]) -> list[Number] | None:
    """The sizes with -1 resolved; None if it is not known. dims: of the tensor."""
    if -1 not in sizes:
        return list(sizes)
    missing = quotient(multiplied(dims), multiplied(n for n in sizes if n != -1))
    return None if missing is None else [missing if n == -1 else n for n in sizes]


def grouped(dims: Sequence[Number], sizes: Sequence[Number]) -> list[Group] | None:
    """The shortest groups of axes, from the first axis on; None if there are none."""
    ahead, behind = list(dims), list(sizes)
    made: list[Group] = []
    while ahead and behind:
        own, new = [ahead.pop(0)], [behind.pop(0)]
        while (count := multiplied(own)) != (other := multiplied(new)):
            more, place = (behind, new) if quotient(count, other) is not None else (ahead, own)
            if not more:
                return None
            place.append(more.pop(0))
        made.append((own, new))
    if any(n != 1 for n in (*ahead, *behind)) or not made:
        return None
    made[-1][0].extend(ahead)
    made[-1][1].extend(behind)
    return made


def regrouped(step: Step, name: str, groups: Sequence[Group]) -> tuple[str, Axes]:
    """The tensor in the shape of its groups."""
    at, made = 0, name
    for own, new in groups:
        rooms = _rooms(step.shape(made)[at : at + len(own)], own, new)
        if rooms:
            shape = step.shape(made)
            made = step.reshape(made, *shape[:at], *rooms, *shape[at + len(own) :])
        else:
            made = _repacked(step, made, at, own, new)
        at += len(new)
    sizes = [n for _, new in groups for n in new]
    return made, {at: n for at, n in enumerate(sizes) if isinstance(n, Sum)}


def _rooms(shape: Sequence[int], own: Sequence[Number], new: Sequence[Number]) -> list[int]:
    """The extents of a group's new axes if a plain reshape does; none if elements have to move."""
    if not all(_is_open_first(some) for some in (own, new)):
        return []
    at = next((at for at, n in enumerate(new) if isinstance(n, Sum)), None)
    if at is None:
        return list(map(most, new))
    behind = prod(map(most, new[at + 1 :]))
    first, rest = divmod(prod(shape), behind)
    return [] if rest else [*map(most, new[:at]), first, *map(most, new[at + 1 :])]


def _is_open_first(some: Sequence[Number]) -> bool:
    """Whether no axis is counted, or only the first one that is longer than one."""
    longer = [n for n in some if n != 1]
    return not any(isinstance(n, Sum) for n in longer[1:])


def _repacked(step: Step, name: str, at: int, own: Sequence[Number], new: Sequence[Number]) -> str:
    """The tensor with some axes from `at` on as others; each element is looked up."""
    rank = len(step.shape(name))
    inner = [axis for axis in range(rank) if not at <= axis < at + len(own)]
    data = step("Transpose", name, perm=[*range(at, at + len(own)), *inner])
    some_count = any(all(least(n) > 0 for n in some) for some in (own, new))  # as many in both
    scalar = step.scalar if some_count else partial(_one_at_least, step)
    before, behind = (list(map(scalar, some)) for some in (own, new))
    made = repack(step, data, before, behind, list(map(most, new)))
    first = [len(new) + k for k in range(at)]
    last = [len(new) + k for k in range(at, len(inner))]
    return step("Transpose", made, perm=[*first, *range(len(new)), *last])


def _one_at_least(step: Step, number: Number) -> str:
    """A number as a scalar, and 1 in the place of 0: then no element counts, wherever it is."""
    made = step.scalar(number)
    return made if least(number) > 0 else step("Max", made, step.constant(1, INT64))
