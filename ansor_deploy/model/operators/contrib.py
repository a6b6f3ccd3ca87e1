"""Operators of com.microsoft that ONNX Runtime's optimiser fuses: split up again."""

from __future__ import annotations

from math import sqrt

from onnx import TensorProto

from .emitter import Emitter
from .operator import contrib

_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def gelu(emit: Emitter) -> str:
    """Compute x / 2 * (1 + erf(x / sqrt(2)))."""
    return _gelu(emit, emit.input(0))


def bias_gelu(emit: Emitter) -> str:
    """Gelu of a sum."""
    return _gelu(emit, emit("Add", emit.input(0), emit.input(1)))


def _gelu(emit: Emitter, name: str) -> str:
    """X / 2 * (1 + erf(x / sqrt(2)))."""
    kind = emit.dtype(emit.input(0))
    error = emit("Erf", emit("Mul", name, emit.constant(sqrt(0.5), kind)))
    half = emit("Mul", name, emit.constant(0.5, kind))
    return emit("Mul", half, emit("Add", error, emit.constant(1, kind)))


def fast_gelu(emit: Emitter) -> str:
    """X / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))."""
    kind = emit.dtype(emit.input(0))
    name = emit("Add", emit.input(0), emit.input(1)) if emit.input(1) else emit.input(0)
    square = emit("Mul", emit("Mul", name, name), emit.constant(0.035677408136300125, kind))
    inner = emit("Mul", name, emit("Add", square, emit.constant(0.7978845608028654, kind)))
    half = emit("Mul", name, emit.constant(0.5, kind))
    return emit("Mul", half, emit("Add", emit("Tanh", inner), emit.constant(1, kind)))


def quick_gelu(emit: Emitter) -> str:
    """X * sigmoid(alpha * x)."""
    name, alpha = emit.input(0), emit.attribute("alpha", 1.702)
    scaled = name
    if alpha != 1:
        scaled = emit("Mul", name, emit.constant(alpha, emit.dtype(name)))
    return emit("Mul", name, emit("Sigmoid", scaled))


def fused_mat_mul(emit: Emitter) -> str:
    """Compute alpha * a @ b, either of them transposed."""
    left, right = (_matrix(emit, index, side) for index, side in enumerate("AB"))
    alpha = emit.attribute("alpha", 1.0)
    if alpha != 1:
        left = emit("Mul", left, emit.constant(alpha, emit.dtype(emit.input(0))))
    return emit("MatMul", left, right)


def _matrix(emit: Emitter, index: int, side: str) -> str:
    """A side of the product; a transposed batch has its first axis before the last instead."""
    name, rank = emit.input(index), len(emit.shape(emit.input(index)))
    axes = list(range(rank))
    if emit.attribute(f"transBatch{side}", 0) and rank > 2:
        axes = [*axes[1:-1], 0, axes[-1]]
    if emit.attribute(f"trans{side}", 0) and rank > 1:
        axes[-2:] = reversed(axes[-2:])
    return name if axes == sorted(axes) else emit("Transpose", name, perm=axes)


def fused_gemm(emit: Emitter) -> str:
    """Gemm and an activation."""
    attributes = {name: emit.attribute(name) for name in ("alpha", "beta", "transA", "transB")}
    product = emit("Gemm", *emit.node.input, **attributes)
    keys = ("activation_alpha", "activation_beta", "activation_gamma")
    parameters = [emit.attribute(key) for key in keys if emit.attribute(key) is not None]
    return _activated(emit, product, parameters)


def fused_conv(emit: Emitter) -> str:
    """Conv, an added tensor, and an activation."""
    kept = {name: emit.attribute(name) for name in _CONV}
    result = emit("Conv", *[name for name in emit.node.input[:3] if name], **kept)
    if emit.input(3):
        result = emit("Add", result, emit.input(3))
    return _activated(emit, result, emit.attribute("activation_params", []))


def _activated(emit: Emitter, name: str, given: list[float]) -> str:
    """An activation by its name, with its parameters in the order of ONNX's attributes."""
    activation = emit.attribute("activation", "")
    if activation in ("Relu", "Tanh", "Sigmoid"):
        return emit(activation, name)
    if activation == "LeakyRelu":
        return emit("LeakyRelu", name, alpha=given[0] if given else 0.01)
    if activation == "HardSigmoid":
        alpha, beta = given or (0.2, 0.5)
        return emit("HardSigmoid", name, alpha=alpha, beta=beta)
    if activation == "Clip":
        low, high = (emit.constant(value, TensorProto.FLOAT) for value in given)
        return emit("Min", emit("Max", name, low), high)
    if activation:
        raise emit.refuse(f"its activation {activation} is not supported")
    return name


OPERATORS = (
    contrib("Gelu", expand=gelu),
    contrib("BiasGelu", expand=bias_gelu),
    contrib("FastGelu", expand=fast_gelu),
    contrib("QuickGelu", expand=quick_gelu),
    contrib("FusedMatMul", expand=fused_mat_mul),
    contrib("TransposeMatMul", expand=fused_mat_mul),
    contrib("FusedGemm", expand=fused_gemm),
    contrib("FusedConv", expand=fused_conv),
)
