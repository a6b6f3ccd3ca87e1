"""Run inputs of any length in a range, with a library that has room for the longest.

    ids of 100 tokens, room for 512  ->  ids with 412 behind them that do not count, and 100

The length is another input of the library's function, and other outputs hold the lengths of
outputs. The function's loops end at the length (`codegen/lengths/`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .tensors import counted, numpy_dtype, unwritten

if TYPE_CHECKING:
    from .batches import Arrays, Part
    from .interface import Interface, TensorInfo

Sizes = tuple[int, ...]  # a length for each range
_SHARE = 2  # of a room, at most this part (1/2) is copied


def tried_together(ranges: Sequence[tuple[int, int, int]]) -> list[Sizes]:
    """The lengths at which a library is tried and timed: the largest, odd ones, the least.

    With several ranges, also the least of the first with the largest of the others.

    ranges: the least, the most and the step of each.
    """
    least, most, _ = zip(*ranges, strict=True)
    odd = [_odd(*one) for one in ranges]
    apart = [(low, *most[1:]) for low in least[:1] if len(ranges) > 1]
    return list(dict.fromkeys([most, tuple(odd), *apart, least]))


def _odd(least: int, most: int, step: int) -> int:
    """A length of an odd number of steps, about five eighths of the largest."""
    return min(most, max(least, (5 * most // (8 * step) | 1) * step))


class Lengths:
    """The lengths that a library takes.

    said: the manifest's `ranges`: each has `least`, `most` and `step`, the input `length` that
    holds the length, and the `places`, inputs and their axes, that are this length, or as many
    times that as `times` says. called: the interface of its function.
    """

    def __init__(self, said: Sequence[Mapping[str, Any]], called: Sequence[Interface]) -> None:
        self._ends = [(one["least"], one["most"], one["step"]) for one in said]
        self._lengths = [one["length"] for one in said]
        self._places = [[(name, axis) for name, axis in one["places"]] for one in said]
        self._firsts = [places[0] for places in self._places]
        self._times = [one.get("times") or [1] * len(one["places"]) for one in said]
        self._called = called[0]
        self._made: dict[Sizes, Interface] = {}
        self._rooms: dict[str, list[np.ndarray]] = defaultdict(list)  # arrays that no call uses now
        self._given = [info for info in self._called.inputs if info.name not in self._lengths]
        inner = {name for info in self._called.outputs for _, name in info.lengths}
        self._results = [info for info in self._called.outputs if info.name not in inner]

    @property
    def interfaces(self) -> list[Interface]:
        """The interfaces at the lengths at which the library is tried."""
        return [self.interface(*sizes) for sizes in tried_together(self._ends)]

    @property
    def tried(self) -> list[Interface]:
        """The interfaces that are tried besides `interfaces`: none."""
        return []

    @property
    def count(self) -> int:
        """How many lengths a call has."""
        return len(self._ends)

    @property
    def takes(self) -> str:
        """The inputs as text, such as "ids: int64[1, 1..512]"."""
        shapes = (", ".join(self._sizes(info, self._ends)) for info in self._given)
        pairs = zip(self._given, shapes, strict=True)
        return ", ".join(f"{info.name}: {info.dtype}[{shape}]" for info, shape in pairs)

    def interface(self, *sizes: int) -> Interface:
        """The interface at these lengths, one for each range; outputs have their full room."""
        if sizes not in self._made:
            ends = [(size, size, 1) for size in sizes]
            inputs = tuple(
                replace(info, shape=tuple(map(int, self._sizes(info, ends))))
                for info in self._given
            )
            self._made[sizes] = replace(self._called, inputs=inputs)
        return self._made[sizes]

    def of(self, inputs: Arrays) -> Interface | None:
        """The interface of inputs by their lengths; None where a length is not in its range."""
        sizes = self._sizes_of(inputs)
        return self._made.get(sizes) or (self.interface(*sizes) if self._fits(sizes) else None)

    def parts(self, inputs: Arrays, outputs: Arrays) -> Iterator[Part]:
        """The single part of a run. outputs: with their full room."""
        given = {info.name: self._in_room(info, inputs[info.name]) for info in self._given}
        sizes = (np.array(size, np.int64) for size in self._sizes_of(inputs))
        yield 0, {**given, **dict(zip(self._lengths, sizes, strict=True))}, outputs
        for info in self._given:
            if given[info.name] is not inputs[info.name]:
                self._rooms[info.name].append(given[info.name])

    def results(self, run: Callable[[Arrays], None]) -> dict[str, np.ndarray]:
        """The results of a run in their true sizes, which belong to the caller.

        Where little of a room counts, that is copied, and the room serves the next run: the system
        would clear the pages of a new one. run: writes outputs to arrays with full room.
        """
        made = {info.name: self._out_room(info) for info in self._called.outputs}
        run(made)
        found = {}
        for info in self._results:
            room = made[info.name]
            part = counted(info, made)
            if small := _SHARE * part.nbytes <= room.nbytes:
                self._rooms[info.name].append(room)
            found[info.name] = part.copy() if small else np.ascontiguousarray(part)
        return found

    def _fits(self, sizes: Sizes) -> bool:
        pairs = zip(sizes, self._ends, strict=False)
        within = all(low <= n <= high and n % step == 0 for n, (low, high, step) in pairs)
        return within and len(sizes) == len(self._ends)

    def _sizes_of(self, inputs: Arrays) -> Sizes:
        """The lengths of inputs; none where an input that tells one is missing."""
        try:
            return tuple([inputs[name].shape[axis] for name, axis in self._firsts])
        except (KeyError, IndexError):
            return ()

    def _in_room(self, info: TensorInfo, given: np.ndarray) -> np.ndarray:
        """An input with room behind it, which holds whatever earlier calls left there."""
        if given.shape == info.shape:
            return given
        room = self._spare(info)
        if room is None:
            room = np.zeros(info.shape, numpy_dtype(info.dtype))
        room[tuple(map(slice, given.shape))] = given
        return room

    def _out_room(self, info: TensorInfo) -> np.ndarray:
        room = self._spare(info)
        return unwritten(info.shape, info.dtype) if room is None else room

    def _spare(self, info: TensorInfo) -> np.ndarray | None:
        """The room of an input or output that an earlier call left, if any."""
        try:
            return self._rooms[info.name].pop()
        except IndexError:
            return None

    def _sizes(self, info: TensorInfo, ends: Sequence[tuple[int, int, int]]) -> list[str]:
        """The extents of an input as texts, with these ranges of the lengths."""
        own = {}
        for places, times, one in zip(self._places, self._times, ends, strict=True):
            for (name, axis), by in zip(places, times, strict=True):
                if name == info.name:
                    own[axis] = _text(*(n * by for n in one))
        return [own.get(axis, str(size)) for axis, size in enumerate(info.shape)]


def _text(least: int, most: int, step: int) -> str:
    if least == most:
        return str(least)
    return f"{least}..{most}" + (f":{step}" if step > 1 else "")
