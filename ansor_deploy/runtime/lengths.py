"""Inputs of a length that a call gives, of a library that has room for the most.

    ids of 100 tokens, room for 512  ->  ids with 412 behind them that do not count, and 100

How much counts is an input of the library's function; of what it gives, as much counts as other
outputs say. Its loops end where that ends (`codegen/lengths/`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .tensors import numpy_dtype

if TYPE_CHECKING:
    from .batches import Arrays, Part
    from .interface import Interface, TensorInfo


def tried_lengths(least: int, most: int) -> tuple[int, ...]:
    """The lengths by which a library is tried and timed: the most, an odd one, the least."""
    odd = min(most, max(least, (5 * most // 8) | 1))
    return tuple(dict.fromkeys((most, odd, least)))


class Lengths:
    """The lengths that a library takes.

    said: the manifest's `range`: `least` and `most`, the input `length` that says how much counts,
    and the `places`, inputs and their axes, that are as long. called: what its function takes.
    """

    def __init__(self, said: Mapping[str, Any], called: Sequence[Interface]) -> None:
        self.least, self.most, self._length = said["least"], said["most"], said["length"]
        self._places = [(name, axis) for name, axis in said["places"]]
        self._called = called[0]
        self._made: dict[int, Interface] = {}  # by length
        self._given = [info for info in self._called.inputs if info.name != self._length]

    @property
    def interfaces(self) -> list[Interface]:
        """What the library takes and gives where it is tried."""
        return [self.interface(length) for length in tried_lengths(self.least, self.most)]

    @property
    def tried(self) -> list[Interface]:
        """What it is tried by beside `interfaces`."""
        return []

    @property
    def takes(self) -> str:
        """The inputs as text, such as "ids: int64[1, 1..512]"."""
        length = f"{self.least}..{self.most}"
        shapes = (", ".join(self._sizes(info, length)) for info in self._given)
        pairs = zip(self._given, shapes, strict=True)
        return ", ".join(f"{info.name}: {info.dtype}[{shape}]" for info, shape in pairs)

    def interface(self, length: int) -> Interface:
        """What the library takes at a length, and gives: as much as there may be."""
        if length not in self._made:
            sizes = ((info, map(int, self._sizes(info, str(length)))) for info in self._given)
            inputs = tuple(replace(info, shape=tuple(some)) for info, some in sizes)
            self._made[length] = replace(self._called, inputs=inputs)
        return self._made[length]

    def of(self, inputs: Arrays) -> Interface | None:
        """The interface of inputs by their length; None if that is not within the range."""
        length = self._length_of(inputs)
        return self.interface(length) if self.least <= length <= self.most else None

    def parts(self, inputs: Arrays, outputs: Arrays) -> Iterator[Part]:
        """The one part of a run. outputs: as large as can be."""
        given = {info.name: self._in_room(info, inputs[info.name]) for info in self._given}
        length = np.array(self._length_of(inputs), np.int64)
        yield 0, {**given, self._length: length}, outputs

    def _length_of(self, inputs: Arrays) -> int:
        name, axis = self._places[0]
        given = inputs.get(name)
        return given.shape[axis] if given is not None and given.ndim > axis else 0

    def _in_room(self, info: TensorInfo, given: np.ndarray) -> np.ndarray:
        """An input with room behind it."""
        if given.shape == info.shape:
            return given
        room = np.zeros(info.shape, numpy_dtype(info.dtype))
        room[tuple(map(slice, given.shape))] = given
        return room

    def _sizes(self, info: TensorInfo, length: str) -> list[str]:
        """The extents of an input, with this text for its length."""
        axes = [axis for name, axis in self._places if name == info.name]
        return [length if axis in axes else str(size) for axis, size in enumerate(info.shape)]
