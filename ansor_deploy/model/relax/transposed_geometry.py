"""A transposed convolution along its spatial axes, and the cost of each way to compute it."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

# Multiply-adds of vectors that take as long as copying one vector.
COPY = 16
# Multiply-adds of vectors that take as long as the call of a kernel.
CALL = 2000
# The relative cost of a multiply-add where a tile is one vector wide: each needs its own input.
NARROW = 1.25


@dataclass(frozen=True)
class Geometry:
    """Extents of the spatial axes, one number for each axis.

    extents: of the input. sizes: of the result. begins: padding, which is cut off the result.
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

        With a single input nothing overlaps, so the stride is set to the size of the kernel: then
        no tap is wasted.
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
        """The number of taps of a phase."""
        return [math.ceil(k / s) for k, s in zip(self.taps, self.strides, strict=True)]

    @cached_property
    def counts(self) -> list[int]:
        """The number of positions of a phase."""
        return [math.ceil(size / s) for size, s in zip(self.sizes, self.strides, strict=True)]

    @cached_property
    def cuts(self) -> list[int]:
        """Elements that the dense convolution computes before the result: less than a position."""
        sizes = zip(self.begins, self.strides, self.steps, strict=True)
        return [begin - min(begin // s, steps - 1) * s for begin, s, steps in sizes]

    @cached_property
    def dense_counts(self) -> list[int]:
        """Positions of the dense convolution, including those that are cut off."""
        ends = map(sum, zip(self.cuts, self.sizes, strict=True))
        return [math.ceil(end / s) for end, s in zip(ends, self.strides, strict=True)]

    @property
    def is_whole(self) -> bool:
        """Whether all phases have the same number of positions."""
        return all(size % s == 0 for size, s in zip(self.sizes, self.strides, strict=True))

    def taps_of(self, axis: int, phase: int) -> int:
        """The number of taps that a phase really has: the first phases may have one more."""
        stride = self.strides[axis]
        return math.ceil((self.taps[axis] - (phase + self.begins[axis]) % stride) / stride)

    def positions_of(self, axis: int, phase: int) -> int:
        """The number of positions that a phase has before the result ends."""
        return math.ceil((self.sizes[axis] - phase) / self.strides[axis])

    def costs(self, lanes: int) -> dict[str, float]:
        """Multiply-adds of vectors for each way that can be used.

        "dense": all phases as channels, cropped and interleaved. "together": all phases in one
        kernel, each with the taps and positions of the largest. "apart": a kernel for each phase,
        interleaved.
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
        """The sum over all phases of taps times positions."""
        return math.prod(
            sum(self.taps_of(axis, f) * self.positions_of(axis, f) for f in range(stride))
            for axis, stride in enumerate(self.strides)
        )
