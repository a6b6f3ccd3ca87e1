"""A transposed convolution along its spatial axes, and what each way to compute it costs."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

# Multiply-adds of vectors that take as long as the copy of one, and as the call of a kernel.
COPY, CALL = 16, 2000
# What a multiply-add costs where a tile is one vector wide: each needs an input of its own.
NARROW = 1.25


@dataclass(frozen=True)
class Geometry:
    """Extents of the spatial axes, one number for each axis.

    extents: of the input. sizes: of the result. begins: padding, cut off the result.
    outputs, depth: channels of the result, and of the input.
    """

    extents: list[int]
    sizes: list[int]
    strides: list[int]
    taps: list[int]
    begins: list[int]
    outputs: int
    depth: int

    @classmethod
    def of(cls, data: Any, weight: np.ndarray, attrs: Any, shape: list[int]) -> "Geometry":
        """The geometry of an operator.

        Of a single input nothing overlaps: with a stride as long as the kernel no tap is wasted.
        """
        extents, taps = [int(extent) for extent in data.ty.shape][1:-1], list(weight.shape[2:])
        strides = [
            tap if extent == 1 else int(stride)
            for stride, tap, extent in zip(attrs.strides, taps, extents, strict=True)
        ]
        begins = [int(padding) for padding in attrs.padding][: len(taps)]
        return cls(extents, shape[2:], strides, taps, begins, weight.shape[1], weight.shape[0])

    @cached_property
    def steps(self) -> list[int]:
        """Taps of a phase."""
        return [math.ceil(k / s) for k, s in zip(self.taps, self.strides, strict=True)]

    @cached_property
    def counts(self) -> list[int]:
        """Positions of a phase."""
        return [math.ceil(size / s) for size, s in zip(self.sizes, self.strides, strict=True)]

    @cached_property
    def cuts(self) -> list[int]:
        """What the dense convolution computes before the result: a part of a position."""
        sizes = zip(self.begins, self.strides, self.steps, strict=True)
        return [begin - min(begin // s, steps - 1) * s for begin, s, steps in sizes]

    @cached_property
    def dense_counts(self) -> list[int]:
        """Positions of the dense convolution: with those that are cut off."""
        ends = map(sum, zip(self.cuts, self.sizes, strict=True))
        return [math.ceil(end / s) for end, s in zip(ends, self.strides, strict=True)]

    @property
    def is_whole(self) -> bool:
        """Whether all phases have as many positions."""
        return all(size % s == 0 for size, s in zip(self.sizes, self.strides, strict=True))

    def taps_of(self, axis: int, phase: int) -> int:
        """Taps that a phase has of its own: the first ones of a stride may have one more."""
        stride = self.strides[axis]
        return math.ceil((self.taps[axis] - (phase + self.begins[axis]) % stride) / stride)

    def positions_of(self, axis: int, phase: int) -> int:
        """Positions that a phase has before the result ends."""
        return math.ceil((self.sizes[axis] - phase) / self.strides[axis])

    def costs(self, lanes: int) -> dict[str, float]:
        """Multiply-adds of vectors that each way takes, of those that there are.

        "dense": all phases as channels, cut out and interleaved. "together": phases in one kernel,
        each with as many taps and positions as the largest. "apart": a kernel each, interleaved.
        """
        phases, adds = math.prod(self.strides), math.prod(self.steps) * self.depth
        width = math.ceil(self.outputs / lanes)
        copy = COPY * math.prod(self.sizes) * width if phases > 1 else 0
        dense = math.prod(self.dense_counts) * math.ceil(phases * self.outputs / lanes) * adds
        if phases == 1 or min(self.counts) == 1:
            return {"dense": dense + copy}
        narrow = width * (NARROW if self.outputs <= lanes else 1)
        together = math.prod(self.counts) * phases * narrow * adds
        found = {"dense": dense + copy, "together": together + (0 if self.is_whole else copy)}
        if all(tap >= stride for tap, stride in zip(self.taps, self.strides, strict=True)):
            found["apart"] = self._own_adds() * self.depth * narrow + copy + CALL * phases
        return found

    def _own_adds(self) -> int:
        """Taps times positions, of all phases."""
        return math.prod(
            sum(self.taps_of(axis, f) * self.positions_of(axis, f) for f in range(stride))
            for axis, stride in enumerate(self.strides)
        )
