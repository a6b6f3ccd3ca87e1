"""Quantised operators in integer arithmetic: the numbers of ONNX Runtime, step for step.

A real number is (q - zero) * scale. Products are summed in int32, which is exact (float32 is not,
beyond 2**24). Results are rounded to the nearest step, ties to even, and saturated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from onnx import TensorProto

from ..graph.graph import BYTES, is_op
from .emitter import Emitter
from .operator import Operator, contrib

FLOAT, INT32, UINT8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.UINT8
# Products of int32 with this scale or a smaller one leave room for a zero point.
_SHRINKING = 0.5
STORED = {  # the next larger type that TVM has tensors of
    TensorProto.INT4: TensorProto.INT8,
    TensorProto.UINT4: TensorProto.UINT8,
    TensorProto.INT2: TensorProto.INT8,
    TensorProto.UINT2: TensorProto.UINT8,
}
_QUANTISED = frozenset(
    ("int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32")
)
_SMALL_FLOATS = frozenset(
    ("float4e2m1", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
)
_TYPES = _QUANTISED | {"float16", "bfloat16", "float32"}


@dataclass(frozen=True)
class Range:
    """The integers of a quantised ONNX type."""

    kind: int
    low: int
    high: int

    @classmethod
    def of(cls, kind: int) -> Range:
        """The range of an ONNX integer type."""
        name = kind_name(kind)
        bits = int(name.removeprefix("u").removeprefix("int"))
        if name.startswith("u"):
            return cls(kind, 0, 2**bits - 1)
        return cls(kind, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    @property
    def stored(self) -> int:
        """The ONNX type of the tensor that holds them."""
        return STORED.get(self.kind, self.kind)


def kind_name(kind: int) -> str:
    """An ONNX type in the spelling of its documentation."""
    return str(TensorProto.DataType.Name(kind)).lower()


def is_storable(kind: int) -> bool:
    """Whether tensors of a quantised type can be stored; smaller ones than bytes are constants."""
    return kind_name(kind) in _QUANTISED and kind not in STORED


def parameter(emit: Emitter, name: str, *shape: int) -> str:
    """A scale or zero point, reshaped to broadcast: a scalar if it has one element."""
    if not name:
        return ""
    if int(np.prod(emit.shape(name))) == 1:
        shape = ()
    return name if emit.shape(name) == shape else emit.reshape(name, *shape)


def centred(emit: Emitter, name: str, zero: str) -> str:
    """Quantised numbers minus their zero point, as int32."""
    wide = emit.cast(name, INT32)
    value = emit.graph.value(zero) if zero else np.zeros(())
    if value is not None and not value.any():
        return wide
    return emit("Sub", wide, emit.cast(zero, INT32))


def real(emit: Emitter, name: str, scale: str, zero: str) -> str:
    """The float32 numbers that quantised ones stand for. scale, zero: broadcast to them."""
    if kind_name(emit.dtype(name)).startswith("float"):
        wide = emit.cast(name, FLOAT)
        wide = emit("Sub", wide, emit.cast(zero, FLOAT)) if zero else wide
    else:
        wide = emit.cast(centred(emit, name, zero), FLOAT)
    return emit("Mul", wide, scale)


def saturate(emit: Emitter, steps: str, zero: str, kind: int, *, fit: bool = False) -> str:
    """Float32 steps from the zero point, rounded and saturated to the type.

    fit: whether the steps surely fit int32. A conversion to that and back then says so.
    """
    found, rounded = Range.of(kind), emit("Round", steps)
    rounded = emit.cast(emit.cast(rounded, INT32), FLOAT) if fit else rounded
    moved = emit("Add", rounded, emit.cast(zero, FLOAT)) if zero else rounded
    above = emit("Max", moved, emit.constant(float(found.low)))
    return emit.cast(emit("Min", above, emit.constant(float(found.high))), found.stored)


def requantise(emit: Emitter, total: str, scale: str, zero: str) -> str:
    """Int32 sums as steps of another scale. scale: of a product, in steps of the result."""
    steps, kind = emit("Mul", emit.cast(total, FLOAT), scale), emit.dtype(zero)
    fit = kind in BYTES and _shrinks(emit, scale)
    return saturate(emit, steps, parameter(emit, zero), kind, fit=fit)


def _shrinks(emit: Emitter, scale: str) -> bool:
    """Whether products with a scale are smaller, so that those of int32 fit int32 with a byte."""
    known = emit.graph.value(scale)
    return known is not None and bool((np.abs(known) <= _SHRINKING).all())


def after_zero(emit: Emitter, steps: str, zero: str) -> str:
    """Steps rounded after the zero point is added, which decides ties differently than before."""
    if not zero:
        return saturate(emit, steps, "", UINT8)
    moved = emit("Add", steps, emit.cast(parameter(emit, zero), FLOAT))
    return saturate(emit, moved, "", emit.dtype(zero))


def along(emit: Emitter, scale: str, name: str) -> str:
    """A scale or zero point of QuantizeLinear or DequantizeLinear, to broadcast over a tensor."""
    shape, given = emit.shape(name), emit.shape(scale)
    axis = emit.attribute("axis", 1) % max(len(shape), 1)
    block = emit.attribute("block_size", 0)
    if block:
        index = np.arange(shape[axis]) // block
        # A type smaller than a byte is a constant, and is gathered as a wider type.
        wide = emit.cast(scale, INT32) if emit.dtype(scale) in STORED else scale
        return emit("Gather", wide, emit.constant(index, TensorProto.INT64), axis=axis)
    if len(given) == 1 and len(shape) > 1:
        given = tuple(given[0] if at == axis else 1 for at in range(len(shape)))
    fits = zip(reversed(given), reversed(shape), strict=False)
    if math.prod(given) > 1 and not all(one in (1, other) for one, other in fits):
        raise emit.refuse(f"scales of shape {list(given)} fit no tensor of shape {list(shape)}")
    return parameter(emit, scale, *given)


def dequantize_linear(emit: Emitter) -> str:
    """Compute (q - zero) * scale; one scale, or one for each index of an axis or each block."""
    name, scale, zero = emit.input(0), emit.input(1), emit.input(2)
    if not is_storable(emit.dtype(name)) and name not in emit.graph.constants:
        raise emit.refuse(f"{kind_name(emit.dtype(name))} is supported in constants only")
    kind = emit.attribute("output_dtype", 0) or emit.dtype(scale)
    factor = emit.cast(along(emit, scale, name), FLOAT)
    origin = along(emit, zero, name) if zero else ""
    return emit.cast(real(emit, name, factor, origin), kind)


def quantize_linear(emit: Emitter) -> str:
    """Compute saturate(round(x / scale) + zero), the inverse of DequantizeLinear."""
    name, scale, zero = emit.input(0), emit.input(1), emit.input(2)
    kind = emit.attribute("output_dtype", 0) or (emit.dtype(zero) if zero else UINT8)
    result = emit.node.output[0]
    if not is_storable(kind) and result in emit.graph.output_names:
        raise emit.refuse(f"{kind_name(kind)} is not supported in a model's output")
    factor = emit.cast(along(emit, scale, name), FLOAT)
    origin = along(emit, zero, name) if zero else ""
    emit.graph.dtypes[result] = Range.of(kind).stored
    return saturate(emit, emit("Div", emit.cast(name, FLOAT), factor), origin, kind)


def dynamic_quantize_linear(emit: Emitter) -> tuple[str, str, str]:
    """QuantizeLinear with the range of the input's own numbers."""
    steps, scale, zero = quantised_at_run(emit, emit.input(0))
    return steps, scale, zero


def quantised_at_run(emit: Emitter, name: str) -> tuple[str, str, str]:
    """(uint8, scale, zero point) of a float tensor, by its own minimum and maximum."""
    nothing, mask = emit.constant(0.0), _mask(emit, name)
    least = emit("Min", _of_all(emit, "ReduceMin", name, mask, np.inf), nothing)
    most = emit("Max", _of_all(emit, "ReduceMax", name, mask, -np.inf), nothing)
    width = emit("Sub", most, least)
    empty = emit("Equal", width, nothing)
    scale = emit("Where", empty, emit.constant(1.0), emit("Div", width, emit.constant(255.0)))
    origin = emit("Neg", emit("Div", least, scale))
    zero = saturate(emit, origin, "", UINT8)
    return saturate(emit, emit("Div", name, scale), zero, UINT8), scale, zero


def _mask(emit: Emitter, name: str) -> list[str]:
    """The condition and the data of a tensor with zeros where the condition does not hold."""
    maker = emit.graph.producers().get(name)
    if maker is None or not is_op(maker, "Where"):
        return []
    *mask, zero = maker.input
    value = emit.graph.value(zero)
    return [] if value is None or value.any() else mask


def _of_all(emit: Emitter, op: str, name: str, mask: list[str], neutral: float) -> str:
    """The least or the largest number of a tensor, if zero is taken for one of them later.

    So zeros that mask elements are as good as numbers that change no result, where loops can end.
    """
    axes = range(len(emit.shape(name)))
    if mask:
        name = emit("Where", *mask, emit.constant(neutral))
    return emit.reshape(emit.reduce(op, name, *axes))


def q_linear_conv(emit: Emitter) -> str:
    """ConvInteger plus an int32 bias, requantised to the result's scale."""
    return _q_linear_conv(emit, emit.input(0))


def q_linear_conv_channels_last(emit: Emitter) -> str:
    """QLinearConv of (N, ..., C) if `channels_last` says so."""
    return in_its_layout(emit, lambda name: _q_linear_conv(emit, name))


def in_its_layout(emit: Emitter, compute: Callable[[str], str]) -> str:
    """Apply a function of (N, C, ...) to the node's first input, which may have C last."""
    if emit.attribute("channels_last", 0):
        return channels_last(emit, compute)
    return compute(emit.input(0))


def channels_last(emit: Emitter, compute: Callable[[str], str]) -> str:
    """Apply a function of (N, C, ...) to the node's first input, which is (N, ..., C)."""
    rank = len(emit.shape(emit.input(0)))
    first = emit("Transpose", emit.input(0), perm=[0, rank - 1, *range(1, rank - 1)])
    return emit("Transpose", compute(first), perm=[0, *range(2, rank), 1])


def _q_linear_conv(emit: Emitter, name: str) -> str:
    _, x_scale, x_zero, weight, w_scale, w_zero, y_scale, y_zero, bias = map(emit.input, range(9))
    spatial = [1] * (len(emit.shape(weight)) - 2)
    total = _convolution(emit, name, x_zero, weight, w_zero)
    if bias:
        total = emit("Add", total, emit.reshape(bias, -1, *spatial))
    return requantise(
        emit, total, _ratio(emit, x_scale, parameter(emit, w_scale, -1, *spatial), y_scale), y_zero
    )


def _convolution(emit: Emitter, x: str, x_zero: str, weight: str, w_zero: str) -> str:
    kept = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    attributes = {name: emit.attribute(name) for name in kept}
    return emit("ConvInteger", x, weight, x_zero, w_zero, **attributes)


def _ratio(emit: Emitter, left: str, right: str, result: str) -> str:
    """The scale of a product in steps of the result's scale."""
    product = emit("Mul", parameter(emit, left), right)
    return emit("Div", product, parameter(emit, result))


def by_row(emit: Emitter, name: str) -> str:
    """A scale or zero point of a product's left side: one, or one for each row."""
    if not name:
        return ""
    return parameter(emit, name, *(emit.shape(name) if len(emit.shape(name)) > 1 else (-1, 1)))


def by_column(emit: Emitter, name: str) -> str:
    """A scale or zero point of a product's right side: one, or one for each column."""
    return parameter(emit, name, *emit.shape(name)) if name else ""


def q_linear_mat_mul(emit: Emitter) -> str:
    """MatMulInteger, requantised to the result's scale."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = map(emit.input, range(8))
    scale = emit("Mul", by_row(emit, a_scale), by_column(emit, b_scale))
    scale = emit.cast(emit("Div", scale, parameter(emit, y_scale)), FLOAT)
    return requantise(emit, emit("MatMulInteger", a, b, a_zero, b_zero), scale, y_zero)


_standard, _contrib = partial(Operator, since=10, types=_TYPES), partial(contrib, types=_TYPES)

OPERATORS = (
    _standard("DequantizeLinear", types=_TYPES | _SMALL_FLOATS, expand=dequantize_linear),
    _contrib("DequantizeLinear", expand=dequantize_linear),
    _standard("QuantizeLinear", expand=quantize_linear),
    _contrib("QuantizeLinear", expand=quantize_linear),
    _standard("DynamicQuantizeLinear", since=11, expand=dynamic_quantize_linear),
    _standard("QLinearConv", expand=q_linear_conv),
    _contrib("QLinearConv", expand=q_linear_conv_channels_last),
    _standard("QLinearMatMul", expand=q_linear_mat_mul),
)
