"""Weights with a scale for each block: stored as bytes, made float32 when they are loaded.

    DequantizeLinear of a constant, with block_size
    -->
    w[k, c] = float32(steps[k, c]) * scale[k / 32, c]         in each load (`narrow.py`)

A column with one scale is a single block. Other passes transpose weights as float32; those that
remain are recognised by their numbers afterwards. 4-bit weights are stored eight a word where few
rows are multiplied by them (`operators/block_products.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from ..._tvm import tirx
from ..onnx.skeleton import attribute
from ..operators.block_products import weight
from ..operators.four_bits import FEW, words_of

# The range of steps from the zero point that a byte holds.
_LEAST = -128
_MOST = 127


@dataclass(frozen=True, eq=False)
class Blockwise:
    """A matrix of steps (int8), and a scale for each block of `size` steps along an axis.

    words: the steps packed eight a word, which are stored instead; None where each is a byte.
    """

    steps: np.ndarray
    scales: np.ndarray
    axis: int
    size: int
    words: np.ndarray | None = None

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The constants that are stored."""
        return self.steps if self.words is None else self.words, self.scales

    @property
    def key(self) -> Hashable:
        """A key that is equal for weights whose elements are loaded by the same code."""
        return self.words is None, self.axis, self.size

    def loaded(self, buffers: Sequence[Any], indices: Sequence[Any]) -> Any:
        """An element as float32."""
        stored, scales = buffers
        return weight(tirx.BufferLoad, stored, scales, indices, self.axis, self.size)

    @property
    def values(self) -> np.ndarray:
        """The float32 weights that the steps stand for, rounded as constant folding rounds them."""
        block = np.arange(self.steps.shape[self.axis]) // self.size
        return self.steps.astype(np.float32) * np.take(self.scales, block, self.axis)

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
        return Blockwise(self.steps.T.copy(), self.scales.T.copy(), 1 - self.axis, self.size)


class BlockwiseWeights:
    """The block-quantised weights of a model, found by their values, transposed or not."""

    def __init__(self, model: ModelProto) -> None:
        self._given = list(_of(model))
        self._of_shapes: dict[tuple[int, ...], dict[int, Blockwise]] = {}

    def _by_numbers(self, shape: tuple[int, ...]) -> dict[int, Blockwise]:
        """The weights of a shape, by digest; read only when needed: few networks have any."""
        if shape not in self._of_shapes:
            fits = [one for one in self._given if tuple(one[1].dims) in (shape, shape[::-1])]
            found = [_dequantised(node, map(numpy_helper.to_array, of)) for node, *of in fits]
            both = [form for one in found if one is not None for form in (one, one.turned)]
            self._of_shapes[shape] = {_digest(one.values): one for one in both}
        return self._of_shapes[shape]

    def of(self, values: np.ndarray, results: int) -> Blockwise | None:
        """The weights with these values; None if there are none.

        results: the number of elements of the product with them.
        """
        given = self._by_numbers(values.shape)
        known = given.get(_digest(values)) if given else None
        if known is None or not np.array_equal(known.values, values):
            return None
        return known.in_words if results <= FEW * known.outputs else known


def _digest(values: np.ndarray) -> int:
    return hash((values.shape, values.tobytes()))


def _of(model: ModelProto) -> Iterator[tuple[Any, ...]]:
    """Each DequantizeLinear of a constant, with its constants."""
    given = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        named = [given.get(name) for name in node.input if name]
        if node.op_type == "DequantizeLinear" and all(one is not None for one in named):
            yield node, *named


def _dequantised(node: NodeProto, constants: Iterable[np.ndarray]) -> Blockwise | None:
    """The weights of a DequantizeLinear; None if they are not bytes with scales of blocks.

    constants: steps, scales and, rarely, zero points.
    """
    size, axis = attribute(node, "block_size", 0), attribute(node, "axis", 1) % 2
    steps, scales, *zeros = constants
    if steps.ndim != 2 or scales.dtype != np.float32 or not steps.size:
        return None
    if not size:
        axis, size = 1 - axis, steps.shape[1 - axis]
        scales, *zeros = (_of_lines(one, axis, steps.shape) for one in (scales, *zeros))
    steps = steps.astype(np.int16)
    for zero in zeros:
        block = np.arange(steps.shape[axis]) // size
        steps -= np.take(zero.astype(np.int16), block, axis)
    fits = steps.min() >= _LEAST and steps.max() <= _MOST
    return Blockwise(steps.astype(np.int8), scales, axis, size) if fits else None


def _of_lines(given: np.ndarray, axis: int, shape: tuple[int, ...]) -> np.ndarray:
    """One number for each line along an axis, or for all lines, as if a line were one block."""
    lines = np.broadcast_to(given.reshape(-1), shape[1 - axis])
    return np.expand_dims(lines, axis)
