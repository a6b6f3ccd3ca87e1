"""Weights of few bits with a scale and a zero point for each block, as onnxruntime-genai writes.

They must be constants. The weights of a matrix stay bytes or less (`block_products.py`), unless
their zero points are no integers or they are codes of a table (MatMulBnb4): then they become
float32. The integers of a table that is gathered from stay bytes.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .block_products import Blocks, block_product
from .emitter import Emitter
from .operator import REAL, contrib

FLOAT = TensorProto.FLOAT
_BITS = (2, 4, 8)
# The values of the 16 codes, by MatMulBnb4's quant_type: FP4 and NF4 of bitsandbytes.
_POSITIVE = (0, 5.208333333e-03, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
_LEVELS = {
    0: np.float32([*_POSITIVE, *(-one for one in _POSITIVE)]),
    1: np.float32([
        -1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
        -0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725,
        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
        0.7229568362236023, 1,
    ]),
}  # fmt: skip
# The accuracy level with which rows may be rounded to bytes.
_ROUNDED = 4


def mat_mul_n_bits(emit: Emitter) -> str:
    """Compute a @ b^T + bias, with rows as bytes where `accuracy_level` allows that."""
    bias = emit.input(5)
    if emit.attribute("weight_prepacked", 0):
        raise emit.refuse("its weights are packed for a processor: export it without that")
    if emit.input(4):
        raise emit.refuse("its g_idx is not supported: quantise it without reordering (act_order)")
    result = _product(emit)
    if bias:
        result = emit("Add", result, emit.cast(bias, FLOAT))
    return emit.cast(result, emit.dtype(emit.input(2)))  # the type of scales is known at once


def _product(emit: Emitter) -> str:
    """The rows times the weights, which stay bytes if their steps fit."""
    _bits(emit)
    steps, zeros, scales = _steps(emit)
    left = emit.cast(emit.input(0), FLOAT)
    rounded = emit.attribute("accuracy_level", 0) == _ROUNDED and zeros.dtype == np.uint8
    if not rounded:
        steps, zeros = _from_zero(steps, zeros), None
    whole = steps if rounded else _in_bytes(steps)
    depth, size = emit.attribute("K"), emit.attribute("block_size")
    if whole is None:
        weight = (steps * scales).reshape(len(steps), -1)[:, :depth]
        return emit("MatMul", left, emit.constant(weight.T))
    lines = whole.reshape(len(whole), -1)[:, :depth].T
    shape = emit.known_shape(emit.input(0))
    lead = None if shape is None else shape[:-1]
    zeros = None if zeros is None else np.broadcast_to(zeros, scales.shape)[..., 0].T
    return block_product(emit, left, lead, Blocks(lines, scales[..., 0].T, size, zeros))


def _from_zero(steps: np.ndarray, zeros: np.ndarray) -> np.ndarray:
    """Steps minus their zero points; in bytes if one zero point serves all."""
    if zeros.size == 1:
        return (steps - zeros).view(np.int8)
    return steps - zeros.astype(np.int16 if zeros.dtype == np.uint8 else np.float32)


def _in_bytes(steps: np.ndarray) -> np.ndarray | None:
    """Steps as signed bytes; None if they do not fit."""
    if steps.dtype == np.int8 or not steps.size:
        return steps.astype(np.int8)
    fits = steps.min() >= -128 and steps.max() <= 127
    short = steps.astype(np.int8) if fits else None
    return short if short is not None and np.array_equal(short, steps) else None


def _steps(emit: Emitter) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The steps (N, blocks, size), zero points and scales; without zero points, one for all."""
    rows, bits = emit.attribute("N"), emit.attribute("bits", 4)
    steps = unpacked(emit.constant_input(1), bits).reshape(rows, -1, emit.attribute("block_size"))
    scales = emit.constant_input(2).reshape(rows, -1, 1).astype(np.float32)
    middle = np.full((1, 1, 1), 2 ** (bits - 1), np.uint8)
    return steps, _zeros(emit, bits, *steps.shape[:2]) if emit.input(3) else middle, scales


def _zeros(emit: Emitter, bits: int, rows: int, blocks: int) -> np.ndarray:
    """The zero point of each block, (N, blocks, 1): packed like the weights, or floats."""
    given = emit.constant_input(3)
    if given.dtype != np.uint8:
        return given.reshape(rows, blocks, 1).astype(np.float32)
    return unpacked(given.reshape(rows, -1), bits)[:, :blocks].reshape(rows, blocks, 1)


def mat_mul_bnb4(emit: Emitter) -> str:
    """Compute a @ b^T with weights given as 4-bit codes of a table; they become float32."""
    levels = _LEVELS.get(emit.attribute("quant_type", -1))
    if levels is None or not emit.attribute("transB", 1):
        raise emit.refuse("this form of weights is not supported: quantise it to NF4 or FP4")
    rows, depth = emit.attribute("N"), emit.attribute("K")
    emit.room_for(rows, depth)
    halves = unpacked(emit.constant_input(1), 4).reshape(-1, 2)
    first = halves[:, ::-1]  # the high half comes first
    numbers = levels[first].reshape(-1)[: rows * depth]
    scales = np.repeat(emit.constant_input(2).astype(np.float32), emit.attribute("block_size"))
    weight = (numbers * scales[: rows * depth]).reshape(rows, depth)
    result = emit("MatMul", emit.cast(emit.input(0), FLOAT), emit.constant(weight.T))
    return emit.cast(result, emit.dtype(emit.input(2)))


def gather_block_quantized(emit: Emitter) -> str:
    """Rows of a quantised table as floats; the table stays quantised."""
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
    """The table's integers minus their zero points."""
    steps, along = _whole(emit, 0), emit.attribute("quantize_axis", 1)
    is_packed = emit.dtype(emit.input(0)) == TensorProto.UINT8
    if not emit.input(3):
        return steps - (2 ** (_bits(emit) - 1) if is_packed else 0)
    blocks = np.arange(steps.shape[along]) // emit.attribute("block_size", 128)
    return steps - np.take(_whole(emit, 3), blocks, along)


def _whole(emit: Emitter, index: int) -> np.ndarray:
    """A constant of integers, unpacked if it consists of bytes."""
    given = emit.constant_input(index)
    return (unpacked(given, _bits(emit)) if given.dtype == np.uint8 else given).astype(np.int16)


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Bytes split into parts along the last axis, the lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = packed[..., None] >> shifts & np.uint8(2**bits - 1)
    return parts.reshape(*packed.shape[:-1], -1)


def _bits(emit: Emitter) -> int:
    bits = int(emit.attribute("bits", 4))
    if bits not in _BITS:
        raise emit.refuse(f"numbers of {bits} bits are not supported: quantise to 4 or 8")
    return bits


OPERATORS = (
    contrib("MatMulNBits", types=REAL | {"uint8", "int32"}, expand=mat_mul_n_bits),
    contrib("MatMulBnb4", types=REAL | {"uint8"}, expand=mat_mul_bnb4),
    contrib(
        "GatherBlockQuantized",
        types=REAL | {"uint8", "int4", "uint4", "int32", "int64"},
        expand=gather_block_quantized,
    ),
)
