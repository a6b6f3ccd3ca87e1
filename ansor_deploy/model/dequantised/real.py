"""Float tensors that are known to stand for integers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto, TensorProto

from ..graph.graph import BYTES, Graph, optional_input
from ..onnx.skeleton import attribute
from ..operators.emitter import Emitter
from ..operators.quantization import FLOAT, INT32, STORED, UINT8, Range, requantise

_WORDS = (TensorProto.INT16, TensorProto.UINT16)


@dataclass(frozen=True, eq=False)
class Real:
    """A float32 tensor that equals (data - zero) * scale.

    data: the name of the integers. scale, zero: arrays of float32 and of integers, with one element
    or one for each index of an axis. kind: the integers' ONNX type.
    """

    data: str
    scale: np.ndarray
    zero: np.ndarray
    kind: int
    axis: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether there is one scale for all of them."""
        return self.scale.size == 1 and self.zero.size == 1

    @property
    def is_bytes(self) -> bool:
        """Whether the integers are bytes."""
        return self.kind in BYTES

    @property
    def is_words(self) -> bool:
        """Whether the integers have 16 bits."""
        return self.kind in _WORDS

    @property
    def is_short(self) -> bool:
        """Whether the integers are smaller than a byte."""
        return self.kind in STORED

    def like(self, data: str) -> Real:
        """The same scale and zero point with other integers."""
        return replace(self, data=data)

    def is_of(self, other: Real) -> bool:
        """Whether equal integers stand for equal numbers in both, if each has one scale."""
        same = self.scale.reshape(-1) == other.scale.reshape(-1)
        return (
            self.kind == other.kind and self.zero.item() == other.zero.item() and bool(same.all())
        )

    def steps(self, numbers: np.ndarray) -> np.ndarray:
        """The integers that float32 numbers become; NaN becomes the least one."""
        found = Range.of(self.kind)
        scale, zero = (self.along(one, numbers.ndim) for one in (self.scale, self.zero))
        with np.errstate(over="ignore"):
            nearest = np.rint(numbers / scale) + zero.astype(np.float32)
        held = np.clip(nearest, found.low, found.high)
        return np.where(np.isnan(held), found.low, held).astype(int)

    def along(self, given: np.ndarray, rank: int) -> np.ndarray:
        """A scale or zero point, to broadcast over numbers of this rank."""
        shape = [-1 if at == self.axis else 1 for at in range(rank)]
        return given.reshape(()) if given.size == 1 else given.reshape(shape)

    def ratio(self, scale: np.ndarray) -> np.ndarray:
        """Other scales divided by this one, which is one for all; infinite beyond float32."""
        with np.errstate(over="ignore"):
            return np.asarray(scale / self.scale.reshape(()))

    def constants(self, emit: Emitter) -> tuple[str, str]:
        """The scale and the zero point as constants of the graph."""
        return emit.constant(self.scale), emit.constant(self.zero, self.kind)


@dataclass(frozen=True, eq=False)
class Sum:
    """A float32 tensor that equals total * scale + bias.

    total: the name of an int32 tensor. scale: broadcasts to it. bias: the name of a float32 tensor,
    or "".
    """

    total: str
    scale: np.ndarray
    bias: str = ""

    def real(self, emit: Emitter) -> str:
        """The numbers themselves."""
        made = emit("Mul", emit.cast(self.total, FLOAT), emit.constant(self.scale))
        return emit("Add", made, self.bias) if self.bias else made

    def requantised(self, emit: Emitter, to: Real) -> str | None:
        """The numbers as integers of another scale, by one product, as in QLinearConv.

        None if there is no such product.
        """
        ratio = to.ratio(self.scale)
        if self.bias or not np.isfinite(ratio).all():
            return None
        zero = emit.constant(to.zero.reshape(()), to.kind)
        return requantise(emit, self.total, emit.constant(ratio), zero)


def is_quantize(node: NodeProto) -> bool:
    """Whether the node makes integers from numbers."""
    return node.op_type == "QuantizeLinear"


def is_dequantize(node: NodeProto) -> bool:
    """Whether the node makes numbers from integers."""
    return node.op_type == "DequantizeLinear"


def real_of(graph: Graph, node: NodeProto) -> Real | None:
    """The scale and zero point of a QuantizeLinear or DequantizeLinear, with its integers.

    None if they are not constant, not float32 or for blocks; also if the integers are smaller than
    a byte and not constant. A scale of zero, which makes all numbers zero, is accepted for a
    DequantizeLinear: channels of weights may have one.
    """
    scale, zero = graph.value(node.input[1]), graph.value(optional_input(node, 2))
    if scale is None or scale.dtype != np.float32 or attribute(node, "block_size", 0):
        return None
    if zero is None and optional_input(node, 2):
        return None
    if zero is not None:
        kind = graph.dtypes.get(node.input[2], 0)
    else:
        given = graph.dtypes.get(node.input[0], 0) if is_dequantize(node) else UINT8
        kind = attribute(node, "output_dtype", 0) or given
    zeros = np.zeros(scale.shape, np.int64) if zero is None else zero.astype(np.int64)
    fits = (scale > 0) | ((scale == 0) & is_dequantize(node))
    made = node.output[0] if is_quantize(node) else node.input[0]
    rank = len(graph.shapes.get(node.input[0], ())) or 1
    real = Real(made, scale, zeros, kind, attribute(node, "axis", 1) % rank)
    known = kind in (*BYTES, *_WORDS, INT32) or (made in graph.constants and real.is_short)
    return real if known and (np.isfinite(scale) & fits).all() else None
