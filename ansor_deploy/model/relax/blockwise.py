"""Weights of blocks: a byte each in the library, made float32 by the scale of their block.

    DequantizeLinear of a constant, with block_size; or MatMulNBits
    -->
    w[k, c] = float32(steps[k, c]) * scale[k / 32, c]         in each load (`narrow.py`)

Other passes turn weights as float32; what is left of them is known again by its numbers. Those of
four bits are eight a word where one row is multiplied by them (`four_bits.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from ..._tvm import tirx
from ..graph.graph import optional_input
from ..onnx.skeleton import attribute, domain_of
from ..operators.block_quantised import steps_and_scales
from .four_bits import FourBits

# What a byte holds of steps from the zero point.
_LEAST, _MOST = -128, 127
# Gives an input of a node by its number.
Constants = Callable[[int], np.ndarray]


@dataclass(frozen=True, eq=False)
class Blockwise:
    """A matrix of steps (int8), and the scale of each block of so many along an axis."""

    steps: np.ndarray
    scales: np.ndarray
    axis: int
    size: int

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The constants that are stored."""
        return self.steps, self.scales

    @property
    def key(self) -> Hashable:
        """Equal where elements are loaded alike."""
        return self.axis, self.size

    def loaded(self, buffers: Sequence[Any], indices: Sequence[Any]) -> Any:
        """An element as float32."""
        steps, scales = buffers
        block = [i // self.size if at == self.axis else i for at, i in enumerate(indices)]
        step = tirx.Cast("float32", tirx.BufferLoad(steps, indices))
        return step * tirx.BufferLoad(scales, block)

    @property
    def values(self) -> np.ndarray:
        """What they stand for, rounded as where the model is folded."""
        block = np.arange(self.steps.shape[self.axis]) // self.size
        return self.steps.astype(np.float32) * np.take(self.scales, block, self.axis)

    @property
    def outputs(self) -> int:
        """Of one row that is multiplied by them: blocks lie along what is summed up."""
        return self.steps.size // self.steps.shape[self.axis]

    @cached_property
    def in_words(self) -> FourBits | None:
        """Eight a word; None where four bits do not hold them."""
        return FourBits.of(self.steps, self.scales, self.axis, self.size)

    @property
    def turned(self) -> Blockwise:
        """The transpose."""
        return Blockwise(self.steps.T.copy(), self.scales.T.copy(), 1 - self.axis, self.size)


class BlockwiseWeights:
    """Those of a model, found by their numbers, as they are or turned."""

    def __init__(self, model: ModelProto) -> None:
        self._found = list(_of(model))

    @cached_property
    def _by_numbers(self) -> dict[int, Blockwise]:
        both = (one for found in self._found for one in (found, found.turned))
        return {_digest(one.values): one for one in both}

    def of(self, values: np.ndarray, results: int) -> Blockwise | FourBits | None:
        """The weights that have these numbers; None where there are none.

        results: elements of what is made of them.
        """
        known = self._by_numbers.get(_digest(values)) if self._found else None
        if known is None or not np.array_equal(known.values, values):
            return None
        one_row = results == known.outputs
        return (known.in_words if one_row else None) or known


def _digest(values: np.ndarray) -> int:
    return hash((values.shape, values.tobytes()))


def _of(model: ModelProto) -> Iterator[Blockwise]:
    given = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        first, made = _MADE.get((domain_of(node), node.op_type), (0, None))
        if made and all(name in given for name in node.input[first:4] if name):
            found = made(node, partial(_input, node, given))
            if found is not None:
                yield found


def _input(node: NodeProto, given: Mapping[str, TensorProto], at: int) -> np.ndarray:
    return numpy_helper.to_array(given[node.input[at]])


def _dequantised(node: NodeProto, constant: Constants) -> Blockwise | None:
    """What a DequantizeLinear makes float32."""
    size, axis = attribute(node, "block_size", 0), attribute(node, "axis", 1) % 2
    steps, scales = constant(0), constant(1)
    if not size or steps.ndim != 2:
        return None
    steps = steps.astype(np.int32)
    if optional_input(node, 2):
        block = np.arange(steps.shape[axis]) // size
        steps -= np.take(constant(2).astype(np.int32), block, axis)
    return _in_bytes(steps, scales, axis, size)


def _multiplied(node: NodeProto, constant: Constants) -> Blockwise | None:
    """What a MatMulNBits multiplies by, an output a line: its steps are whole, mostly."""
    steps, scales = steps_and_scales(node, constant)
    steps = steps.reshape(len(steps), -1)[:, : attribute(node, "K")]
    return _in_bytes(steps, scales[..., 0], 1, attribute(node, "block_size"))


def _in_bytes(steps: np.ndarray, scales: np.ndarray, axis: int, size: int) -> Blockwise | None:
    """A matrix of steps that bytes hold; None where they do not."""
    fits = steps.size and steps.min() >= _LEAST and steps.max() <= _MOST
    short = steps.astype(np.int8) if fits and scales.dtype == np.float32 else None
    whole = short is not None and np.array_equal(short, steps)
    return Blockwise(short, scales, axis, size) if whole else None


# By operator, the first of the inputs that are to be known, and what makes the weights of them.
_MADE = {
    ("", "DequantizeLinear"): (0, _dequantised),
    ("com.microsoft", "MatMulNBits"): (1, _multiplied),
}
