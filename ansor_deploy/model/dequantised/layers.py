"""Convolutions and products of what stands for bytes: sums of bytes, as integers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..operators.emitter import Emitter
from ..operators.quantization import INT32
from .real import Real, Sum

_WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def layer(emit: Emitter, reals: Mapping[str, Real]) -> Sum | None:
    """The sums of a Conv, MatMul or Gemm of bytes; None for any other node, or operands."""
    made = _LAYERS.get(emit.node.op_type)
    operands = [reals.get(name) for name in emit.node.input[:2]]
    if made is None or len(operands) < 2 or emit.node.domain not in ("", "ai.onnx"):
        return None
    x, w = operands
    if x is None or w is None or not (x.is_bytes and w.is_bytes and x.is_whole):
        return None
    with np.errstate(over="ignore"):
        if not np.isfinite(x.scale * w.scale).all():  # of which zero times would be no number
            return None
    return made(emit, x, w, reals)


def _convolution(emit: Emitter, x: Real, w: Real, reals: Mapping[str, Real]) -> Sum | None:
    shape = emit.shape(emit.input(1))
    if not _is_by_output(w, 0) or w.data not in emit.graph.constants:
        return None
    window = {name: emit.attribute(name) for name in _WINDOW}
    zeros = (x.constants(emit)[1], w.constants(emit)[1])
    total = emit("ConvInteger", x.data, w.data, *zeros, **window)
    column = (-1, *[1] * (len(shape) - 2))
    return _with_bias(emit, Sum(total, _column(x.scale * w.scale, column)), column, reals)


def _product(emit: Emitter, x: Real, w: Real, _reals: Mapping[str, Real]) -> Sum | None:
    known = w.data in emit.graph.constants and w.axis == 1
    if not w.is_whole and not (known and len(emit.shape(emit.input(1))) == 2):
        return None
    zeros = (x.constants(emit)[1], w.constants(emit)[1])
    total = emit("MatMulInteger", x.data, w.data, *zeros)
    return Sum(total, _column(x.scale * w.scale, (-1,)))


def _gemm(emit: Emitter, x: Real, w: Real, reals: Mapping[str, Real]) -> Sum | None:
    turned = emit.attribute("transB", 0)
    plain = emit.attribute("alpha", 1.0) == emit.attribute("beta", 1.0) == 1.0
    if not plain or not _is_by_output(w, 0 if turned else 1):
        return None
    names = [x.data, w.data]
    for at, flag in enumerate(("transA", "transB")):
        if emit.attribute(flag, 0):
            names[at] = emit("Transpose", names[at], perm=[1, 0])
    total = emit("MatMulInteger", *names, x.constants(emit)[1], w.constants(emit)[1])
    return _with_bias(emit, Sum(total, _column(x.scale * w.scale, (-1,))), (-1,), reals)


def _is_by_output(weight: Real, axis: int) -> bool:
    return weight.is_whole or weight.axis == axis


def _column(scale: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return scale.reshape(() if scale.size == 1 else shape)


def _with_bias(emit: Emitter, found: Sum, shape: tuple[int, ...], reals: Mapping[str, Real]) -> Sum:
    """The sums with the node's third input: integers of their scale, or float32."""
    name = emit.input(2)
    if not name:
        return found
    bias = reals.get(name)
    if bias is not None and _adds_to(bias, found):
        total = emit("Add", found.total, _shaped(emit, bias.data, name, shape))
        return Sum(total, found.scale)
    return Sum(found.total, found.scale, _shaped(emit, name, name, shape))


def _adds_to(bias: Real, sums: Sum) -> bool:
    """Whether the integers of a bias are of the scale of sums."""
    whole = bias.kind == INT32 and not bias.zero.any()
    scales = (one.scale.reshape(-1) for one in (sums, bias))
    return whole and np.allclose(*scales, rtol=1e-5, atol=0)


def _shaped(emit: Emitter, name: str, like: str, shape: tuple[int, ...]) -> str:
    """A bias of one number a column, beside what it is added to. like: of the same shape."""
    return emit.reshape(name, *shape) if len(emit.shape(like)) == 1 and len(shape) > 1 else name


_LAYERS = {"Conv": _convolution, "MatMul": _product, "Gemm": _gemm}
