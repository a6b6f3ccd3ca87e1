"""Weights with a scale for each block: stored as bytes, made float32 when they are loaded.

    DequantizeLinear of a constant, with block_size
    -->
    w[k, c] = float32(steps[k, c]) * scale[k / 32, c]         in each load (`narrow.py`)

A column with one scale is a single block. Zero points are subtracted from the steps if a byte holds
the result, or else in each load. Other passes transpose weights as float32; those that remain are
recognised by their numbers afterwards. 4-bit weights are stored eight a word where few rows are
multiplied by them (`operators/block_products.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper

from ..._tvm import tirx
from ..operators.block_products import weight
from ..operators.four_bits import FEW, words_of
from .channelwise import Channelwise, ChannelwiseWeights
from .dequantisers import Dequantised, dequantised

# The range of steps from the zero point that a byte holds.
_LEAST = -128
_MOST = 127


@dataclass(frozen=True, eq=False)
class Blockwise:
    """A matrix of steps (int8), and a scale for each block of `size` steps along an axis.

    words: the steps packed eight a word, which are stored instead; None where each is a byte.
    zeros: the step of each block that stands for zero, as float32; None if that is 0.
    """

    steps: np.ndarray
    scales: np.ndarray
    axis: int
    size: int
    words: np.ndarray | None = None
    zeros: np.ndarray | None = None

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The constants that are stored."""
        stored = self.steps if self.words is None else self.words
        return stored, self.scales, *([] if self.zeros is None else [self.zeros])

    @property
    def key(self) -> Hashable:
        """A key that is equal for weights whose elements are loaded by the same code."""
        return self.words is None, self.axis, self.size, self.zeros is None

    def loaded(self, buffers: Sequence[Any], indices: Sequence[Any]) -> Any:
        """An element as float32."""
        stored, scales, *zeros = buffers
        return weight(tirx.BufferLoad, stored, scales, indices, self.axis, self.size, *zeros)

    @property
    def values(self) -> np.ndarray:
        """The float32 weights that the steps stand for, rounded as constant folding rounds them."""
        block = np.arange(self.steps.shape[self.axis]) // self.size
        steps = self.steps.astype(np.float32)
        if self.zeros is not None:
            steps -= np.take(self.zeros, block, self.axis)
        return steps * np.take(self.scales, block, self.axis)

    @property
    def outputs(self) -> int:
        """Elements of the product of one row with the weights: blocks lie along the summed axis."""
        return self.steps.size // self.steps.shape[self.axis]

    @property
    def in_words(self) -> Blockwise:
        """The same weights, eight a word if four bits hold each step."""
        return replace(self, words=words_of(self.steps, self.axis))

    @property
    def turned(self) -> Blockwise:
        """The transposed weights."""
        zeros = None if self.zeros is None else self.zeros.T.copy()
        turned = self.steps.T.copy(), self.scales.T.copy()
        return Blockwise(*turned, 1 - self.axis, self.size, zeros=zeros)


class BlockwiseWeights:
    """The block-quantised weights of a model, found by their values, transposed or not."""

    def __init__(self, model: ModelProto) -> None:
        self._given = list(dequantised(model))
        channels = [one.scales for one in self._given if one.is_of_channels]
        self._channels = ChannelwiseWeights(map(numpy_helper.to_array, channels))
        self._of_shapes: dict[tuple[int, ...], dict[int, Blockwise]] = {}

    def _by_numbers(self, shape: tuple[int, ...]) -> dict[int, Blockwise]:
        """The weights of a shape, by digest; read only when needed: few networks have any."""
        if shape not in self._of_shapes:
            both = shape, shape[::-1]
            found = [_blocks(one) for one in self._given if tuple(one.steps.dims) in both]
            forms = [form for one in found if one is not None for form in (one, one.turned)]
            self._of_shapes[shape] = {_digest(one.values): one for one in forms}
        return self._of_shapes[shape]

    def of(self, values: np.ndarray, results: int) -> Blockwise | Channelwise | None:
        """The weights with these values; None if there are none.

        results: the number of elements of the product with them.
        """
        if values.ndim != 2:
            return self._channels.of(values)
        given = self._by_numbers(values.shape)
        known = given.get(_digest(values)) if given else None
        if known is None or not np.array_equal(known.values, values):
            return None
        return known.in_words if results <= FEW * known.outputs else known


def _digest(values: np.ndarray) -> int:
    return hash((values.shape, values.tobytes()))


def _blocks(given: Dequantised) -> Blockwise | None:
    """The weights as bytes with scales of blocks; None if they are not such."""
    axis, size = given.axis, given.size
    steps, scales = map(numpy_helper.to_array, (given.steps, given.scales))
    zeros = [] if given.zeros is None else [numpy_helper.to_array(given.zeros)]
    if steps.ndim != 2 or scales.dtype != np.float32 or not steps.size:
        return None
    if not size:
        axis, size = 1 - axis, steps.shape[1 - axis]
        scales, *zeros = (_of_lines(one, axis, steps.shape) for one in (scales, *zeros))
    wide = steps.astype(np.int16)
    for zero in zeros:
        block = np.arange(steps.shape[axis]) // size
        wide -= np.take(zero.astype(np.int16), block, axis)
    if wide.min() >= _LEAST and wide.max() <= _MOST:
        return Blockwise(wide.astype(np.int8), scales, axis, size)
    if not zeros or steps.dtype.itemsize > 1:
        return None
    less = -_LEAST if steps.dtype == np.uint8 else 0
    signed, zero = (one.astype(np.int16) - less for one in (steps, *zeros))
    known = zero.astype(np.float32)
    return Blockwise(signed.astype(np.int8), scales, axis, size, zeros=known)


def _of_lines(given: np.ndarray, axis: int, shape: tuple[int, ...]) -> np.ndarray:
    """One number for each line along an axis, or for all lines, as if a line were one block."""
    lines = np.broadcast_to(given.reshape(-1), shape[1 - axis])
    return np.expand_dims(lines, axis)
