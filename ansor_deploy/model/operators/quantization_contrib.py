"""Quantised operators of com.microsoft, which ONNX Runtime's quantiser and optimiser write."""

from __future__ import annotations

from math import prod

from onnx import TensorProto

from .emitter import Emitter
from .means import mean_of, window_means
from .operator import contrib
from .quantization import (
    FLOAT,
    after_zero,
    by_column,
    by_row,
    centred,
    channels_last,
    in_its_layout,
    parameter,
    quantised_at_run,
    requantise,
)

_ALONG_ONE_AXIS = 13  # from this opset on, a Softmax is along one axis


def numbers(emit: Emitter, first: int) -> str:
    """The real numbers of an input that is followed by its scale and zero point."""
    return emit("DequantizeLinear", *(emit.input(first + at) for at in range(3)))


def integers(emit: Emitter, name: str, scale: int, like: int = 0) -> str:
    """Quantise real numbers by the scale and zero point in the inputs from this index on.

    like: the input that gives the type if there is no zero point.
    """
    zero = emit.input(scale + 1) or emit.constant(0, emit.dtype(emit.input(like)))
    return emit("QuantizeLinear", name, emit.input(scale), zero)


def q_linear_add(emit: Emitter) -> str:
    """Compute a + b with both in steps of the result, as ONNX Runtime does."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = map(emit.input, range(8))
    step = parameter(emit, y_scale)
    terms = []
    for name, scale, zero in ((a, a_scale, a_zero), (b, b_scale, b_zero)):
        wide = emit.cast(centred(emit, name, parameter(emit, zero)), FLOAT)
        terms.append(emit("Mul", wide, emit("Div", parameter(emit, scale), step)))
    return after_zero(emit, emit("Add", *terms), y_zero)


def q_linear_mul(emit: Emitter) -> str:
    """Compute a * b."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = map(emit.input, range(8))
    left = centred(emit, a, parameter(emit, a_zero))
    total = emit("Mul", left, centred(emit, b, parameter(emit, b_zero)))
    scales = emit("Mul", parameter(emit, a_scale), parameter(emit, b_scale))
    factor = emit("Div", scales, parameter(emit, y_scale))
    return after_zero(emit, emit("Mul", emit.cast(total, FLOAT), factor), y_zero)


def q_linear_where(emit: Emitter) -> str:
    """Choose a where the condition holds, else b."""
    chosen = emit("Where", emit.input(0), numbers(emit, 1), numbers(emit, 4))
    return integers(emit, chosen, 7, like=1)


def q_linear_sigmoid(emit: Emitter) -> str:
    """Compute 1 / (1 + exp(-x))."""
    return integers(emit, emit("Sigmoid", numbers(emit, 0)), 3)


def q_linear_leaky_relu(emit: Emitter) -> str:
    """Choose x where it is positive, else alpha * x."""
    alpha = emit.attribute("alpha", 0.01)
    return integers(emit, emit("LeakyRelu", numbers(emit, 0), alpha=alpha), 3)


def q_linear_softmax(emit: Emitter) -> str:
    """Compute exp(x) / sum(exp(x)) along an axis; before opset 13, over it and all behind it."""
    shape = emit.shape(emit.input(0))
    axis = emit.attribute("axis", -1) % len(shape)
    x = numbers(emit, 0)
    if emit.attribute("opset", _ALONG_ONE_AXIS) < _ALONG_ONE_AXIS:
        rows = emit.reshape(x, prod(shape[:axis]), prod(shape[axis:]))
        return integers(emit, emit.reshape(emit("Softmax", rows, axis=1), *shape), 3)
    last = len(shape) - 1
    swapped = list(range(last + 1))
    swapped[axis], swapped[last] = last, axis
    made = emit("Softmax", emit("Transpose", x, perm=swapped), axis=last)
    return integers(emit, emit("Transpose", made, perm=swapped), 3)


def q_linear_concat(emit: Emitter) -> str:
    """Tensors of several scales concatenated, in one scale."""
    parts = [numbers(emit, first) for first in range(2, len(emit.node.input), 3)]
    return integers(emit, emit("Concat", *parts, axis=emit.attribute("axis")), 0, like=2)


def q_linear_reduce_mean(emit: Emitter) -> str:
    """The mean over some axes."""
    rank = len(emit.shape(emit.input(0)))
    if not emit.attribute("keepdims", 1):
        raise emit.refuse("it is compiled with keepdims=1 only")
    axes = [axis % rank for axis in emit.attribute("axes", range(rank))]
    return integers(emit, emit.reduce("ReduceMean", numbers(emit, 0), *axes), 3)


def q_linear_global_average_pool(emit: Emitter) -> str:
    """The mean over all axes but samples and channels, summed in int32."""
    axes, shape = positions(emit), emit.shape(emit.input(0))
    x_scale, x_zero, y_scale, y_zero = (emit.input(at) for at in range(1, 5))
    count = emit.constant(prod(shape[axis] for axis in axes))
    return mean_of(emit, emit.input(0), (x_scale, x_zero), (y_scale, y_zero), axes, count)


def positions(emit: Emitter) -> range:
    """The axes of a pool's first input that are neither samples nor channels."""
    rank = len(emit.shape(emit.input(0)))
    return range(1, rank - 1) if emit.attribute("channels_last", 0) else range(2, rank)


def q_linear_average_pool(emit: Emitter) -> str:
    """The mean of each window, summed in int32."""
    name, x_scale, x_zero, y_scale, y_zero = map(emit.input, range(5))
    batch, *shape = emit.shape(name)
    if emit.attribute("channels_last", 0):
        shape = [shape[-1], *shape[:-1]]
    y_zero = y_zero or emit.constant(0, emit.dtype(name))
    ends = (x_scale, x_zero), (y_scale, y_zero)
    return in_its_layout(emit, lambda first: window_means(emit, first, (batch, *shape), *ends))


def nhwc_max_pool(emit: Emitter) -> str:
    """MaxPool of (N, ..., C)."""
    kept = ("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")
    attributes = {name: emit.attribute(name) for name in kept}
    return channels_last(emit, lambda name: emit("MaxPool", name, **attributes))


def mat_mul_integer_to_float(emit: Emitter) -> str:
    """MatMulInteger, scaled to real numbers, plus a bias."""
    a, b, a_scale, b_scale, a_zero, b_zero, bias = map(emit.input, range(7))
    scale = emit("Mul", by_row(emit, a_scale), by_column(emit, b_scale))
    return _scaled(emit, emit("MatMulInteger", a, b, a_zero, b_zero), scale, bias)


def mat_mul_integer_16(emit: Emitter) -> str:
    """Products of 16-bit integers, added up in 32 bits."""
    return emit("MatMul", *(emit.cast(emit.input(at), TensorProto.INT32) for at in range(2)))


def dynamic_quantize_mat_mul(emit: Emitter) -> str:
    """MatMulIntegerToFloat with a left side that is quantised here."""
    b, b_scale, b_zero, bias = map(emit.input, range(1, 5))
    steps, a_scale, a_zero = quantised_at_run(emit, emit.input(0))
    total = emit("MatMulInteger", steps, b, a_zero, b_zero)
    return _scaled(emit, total, emit("Mul", a_scale, by_column(emit, b_scale)), bias)


def _scaled(emit: Emitter, total: str, scale: str, bias: str) -> str:
    result = emit("Mul", emit.cast(total, FLOAT), scale)
    return emit("Add", result, bias) if bias else result


def q_gemm(emit: Emitter) -> str:
    """Compute alpha * a @ b + c, with a or b transposed; real numbers if no scale is given."""
    a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero = map(emit.input, range(9))
    left, right = _turned(emit, a, "transA"), _turned(emit, b, "transB")
    total = emit("MatMulInteger", left, right, a_zero, b_zero)
    if c:
        total = emit("Add", total, c)
    scale = emit("Mul", parameter(emit, a_scale), parameter(emit, b_scale, -1))
    scale = emit("Mul", scale, emit.constant(emit.attribute("alpha", 1.0)))
    if not y_scale:
        return _scaled(emit, total, scale, "")
    return requantise(emit, total, emit("Div", scale, parameter(emit, y_scale)), y_zero)


def _turned(emit: Emitter, name: str, flag: str) -> str:
    return emit("Transpose", name, perm=[1, 0]) if emit.attribute(flag, 0) else name


OPERATORS = (
    contrib("QLinearAdd", expand=q_linear_add),
    contrib("QLinearMul", expand=q_linear_mul),
    contrib("QLinearWhere", expand=q_linear_where),
    contrib("QLinearSigmoid", expand=q_linear_sigmoid),
    contrib("QLinearLeakyRelu", expand=q_linear_leaky_relu),
    contrib("QLinearSoftmax", expand=q_linear_softmax),
    contrib("QLinearConcat", expand=q_linear_concat),
    contrib("QLinearReduceMean", expand=q_linear_reduce_mean),
    contrib("QLinearGlobalAveragePool", expand=q_linear_global_average_pool),
    contrib("QLinearAveragePool", expand=q_linear_average_pool),
    contrib("NhwcMaxPool", expand=nhwc_max_pool),
    contrib("MatMulIntegerToFloat", expand=mat_mul_integer_to_float),
    contrib("MatMulInteger16", types=("int16", "int32"), expand=mat_mul_integer_16),
    contrib("DynamicQuantizeMatMul", expand=dynamic_quantize_mat_mul),
    contrib("QGemm", expand=q_gemm),
)
