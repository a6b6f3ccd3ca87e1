"""Convolution weights with a scale for each channel: stored as a byte each in the library.

    DequantizeLinear of a constant
    -->
    w[y, x, k, c] = float32(steps[y, x, k, c]) * scales[c]      in each load (`narrow.py`)

Other passes transpose weights as float32, put the weights of several phases of an image beside each
other and pad channels with zeros. The weights are recognised by their numbers afterwards: all are
whole steps of the scale of their channel.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._tvm import tirx

# The number of weights of a channel from which storing its scale pays.
_MANY = 64
# The number of weights that are looked at first: they mostly show that a scale is not the one.
_FIRST = 64


@dataclass(frozen=True, eq=False)
class Channelwise:
    """Steps (int8), with a scale for each index along an axis."""

    steps: np.ndarray
    scales: np.ndarray
    axis: int

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The constants that are stored."""
        return self.steps, self.scales

    @property
    def key(self) -> Hashable:
        """A key that is equal for weights whose elements are loaded by the same code."""
        return "channels", self.axis

    def loaded(self, buffers: Sequence[Any], indices: Sequence[Any]) -> Any:
        """An element as float32."""
        steps, scales = buffers
        step = tirx.Cast("float32", tirx.BufferLoad(steps, indices))
        return step * tirx.BufferLoad(scales, [indices[self.axis]])


class ChannelwiseWeights:
    """The convolution weights of a model, found by their values. given: the scales of all."""

    def __init__(self, given: Iterable[np.ndarray]) -> None:
        self._scales = list({one.tobytes(): one.reshape(-1) for one in given}.values())

    def of(self, values: np.ndarray) -> Channelwise | None:
        """The weights with these values; None if there are none."""
        for axis in reversed(range(values.ndim)):
            if values.size >= _MANY * values.shape[axis]:
                lines = np.moveaxis(values, axis, -1)
                found = (_steps(lines, scales) for scales in self._fitting(lines))
                for steps, scales in (one for one in found if one is not None):
                    return Channelwise(np.moveaxis(steps, -1, axis).copy(), scales, axis)
        return None

    def _fitting(self, lines: np.ndarray) -> Iterator[np.ndarray]:
        """A scale for each line, from those whose steps the first weights of the first line are."""
        count, first = lines.shape[-1], lines[..., :1].reshape(-1)[:_FIRST]
        for scales in self._scales:
            if scales.size <= count and _steps(first[:, None], scales[:1]) is not None:
                yield np.resize(scales, count)  # repeated for each phase


def _steps(lines: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Signed bytes that give these weights to the last bit, and their scales; None if none do."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        nearest = np.nan_to_num(np.rint(lines / scales))
    if nearest.min() < -128 or nearest.max() > 127:
        return None
    made = nearest.astype(np.int8)
    same = np.array_equal((made.astype(np.float32) * scales).view(np.int32), lines.view(np.int32))
    return (made, scales) if same else None
