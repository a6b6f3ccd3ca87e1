"""Weights of few bits in blocks, each with a scale and a zero point: what onnxruntime-genai writes.

They must be constants. A matrix becomes its float32 numbers, as ONNX Runtime's are on the way (of
which a library keeps bytes, `relax/blockwise.py`); of a table that is looked into, whole numbers of
a byte stay.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto, TensorProto

from ..graph.graph import optional_input
from ..onnx.skeleton import attribute
from .emitter import Emitter
from .operator import REAL, contrib

FLOAT = TensorProto.FLOAT
_BITS = (2, 4, 8)


def mat_mul_n_bits(emit: Emitter) -> str:
    """Compute a @ b^T + bias in float32, whichever `accuracy_level` there is."""
    left, bias = emit.input(0), emit.input(5)
    if emit.attribute("weight_prepacked", 0):
        raise emit.refuse("its weights are packed for a processor: export it without that")
    if emit.input(4):
        raise emit.refuse("its g_idx is not supported: quantise it without reordering (act_order)")
    weight = emit.constant(_matrix(emit).T)
    result = emit("MatMul", emit.cast(left, FLOAT), weight)
    if bias:
        result = emit("Add", result, emit.cast(bias, FLOAT))
    return emit.cast(result, emit.dtype(emit.input(2)))  # of scales, which is known at once


def _matrix(emit: Emitter) -> np.ndarray:
    """The weights, (N, K), in float32."""
    _bits(emit)
    steps, scales = steps_and_scales(emit.node, lambda at: _constant(emit, at))
    return (steps * scales).reshape(len(steps), -1)[:, : emit.attribute("K")]


def steps_and_scales(
    node: NodeProto, constant: Callable[[int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Of a MatMulNBits the steps from the zero points, (N, blocks, of one), and the scales.

    Both are float32. constant: gives an input by its number.
    """
    rows, bits = attribute(node, "N"), attribute(node, "bits", 4)
    sizes = (rows, -1, attribute(node, "block_size"))
    steps = unpacked(constant(1), bits).reshape(sizes).astype(np.float32)
    if optional_input(node, 3):
        steps -= _zeros(constant(3), bits, *steps.shape[:2])
    else:
        steps -= 2 ** (bits - 1)
    return steps, constant(2).reshape(rows, -1, 1).astype(np.float32)


def _zeros(given: np.ndarray, bits: int, rows: int, blocks: int) -> np.ndarray:
    """The zero point of each block, (N, blocks, 1): packed as the weights are, or floats."""
    if given.dtype == np.uint8:
        given = unpacked(given.reshape(rows, -1), bits)[:, :blocks]
    return given.reshape(rows, blocks, 1).astype(np.float32)


def gather_block_quantized(emit: Emitter) -> str:
    """Rows of a quantised table as real numbers; the table stays quantised."""
    steps = _table(emit)
    rank = steps.ndim
    axis, along = (emit.attribute(f"{name}_axis", at) % rank
                   for name, at in (("gather", 0), ("quantize", 1)))  # fmt: skip
    if axis == along:
        raise emit.refuse("it gathers along the axis of its blocks")
    kind = TensorProto.INT8 if steps.min() >= -128 and steps.max() < 128 else TensorProto.INT16
    rows, scale = (emit("Gather", name, emit.input(1), axis=axis)
                   for name in (emit.constant(steps, kind), emit.input(2)))  # fmt: skip
    after = along + (len(emit.shape(emit.input(1))) - 1 if axis < along else 0)
    block = np.arange(steps.shape[along]) // emit.attribute("block_size", 128)
    factor = emit("Gather", scale, emit.constant(block, TensorProto.INT64), axis=after)
    result = emit("Mul", emit.cast(rows, FLOAT), emit.cast(factor, FLOAT))
    return emit.cast(result, emit.dtype(emit.input(2)))


def _table(emit: Emitter) -> np.ndarray:
    """Whole numbers without their zero points."""
    steps, along = _whole(emit, 0), emit.attribute("quantize_axis", 1)
    is_packed = emit.dtype(emit.input(0)) == TensorProto.UINT8
    if not emit.input(3):
        return steps - (2 ** (_bits(emit) - 1) if is_packed else 0)
    blocks = np.arange(steps.shape[along]) // emit.attribute("block_size", 128)
    return steps - np.take(_whole(emit, 3), blocks, along)


def _whole(emit: Emitter, index: int) -> np.ndarray:
    """A constant of whole numbers, unpacked where it is one of bytes."""
    given = _constant(emit, index)
    return (unpacked(given, _bits(emit)) if given.dtype == np.uint8 else given).astype(np.int16)


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Bytes taken apart along the last axis, the lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = packed[..., None] >> shifts & np.uint8(2**bits - 1)
    return parts.reshape(*packed.shape[:-1], -1)


def _bits(emit: Emitter) -> int:
    bits = int(emit.attribute("bits", 4))
    if bits not in _BITS:
        raise emit.refuse(f"numbers of {bits} bits are not supported: quantise to 4 or 8")
    return bits


def _constant(emit: Emitter, index: int) -> np.ndarray:
    value = emit.graph.value(emit.input(index))
    if value is None:
        raise emit.refuse(f"its input '{emit.input(index)}' must be a constant")
    return value


OPERATORS = (
    contrib("MatMulNBits", types=REAL | {"uint8", "int32"}, expand=mat_mul_n_bits),
    contrib(
        "GatherBlockQuantized",
        types=REAL | {"uint8", "int4", "uint4", "int32", "int64"},
        expand=gather_block_quantized,
    ),
)
