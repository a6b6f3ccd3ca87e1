"""Products of activations whose scale and zero point are found in a run, as integer sums.

    DynamicQuantizeLinear ; DequantizeLinear ; MatMul(x, w)
    -->
    DynamicQuantizeLinear ; MatMulInteger(x, w) ; Cast ; Mul(the scales' product)

ONNX Runtime's quantiser writes this form itself; others leave conversions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from ..graph.graph import optional_input
from ..operators.emitter import Emitter
from ..operators.quantization import FLOAT, UINT8
from .layers import layer
from .real import Real, is_dequantize


@dataclass(frozen=True, eq=False)
class _OfRun(Real):
    """A tensor of bytes with a scale and a zero point that a run finds.

    names: of the scale and the zero point.
    """

    names: tuple[str, str] = ("", "")

    def constants(self, emit: Emitter) -> tuple[str, str]:
        """The names of the scale and of the zero point."""
        return self.names


def product_of_run(
    emit: Emitter, makers: Mapping[str, NodeProto], reals: Mapping[str, Real]
) -> str | None:
    """A Conv, MatMul or Gemm of such activations with weights; None for other nodes."""
    node, bias = emit.node, emit.input(2)
    found = _of_run(emit, makers.get(emit.input(0)))
    if found is None or (bias and emit.attribute("beta", 1.0) != 1):
        return None
    alone = NodeProto()
    alone.CopyFrom(node)
    del alone.input[2:]
    inside = Emitter(emit.graph, alone)
    sums = layer(inside, {**reals, emit.input(0): found})
    if sums is None:
        return None
    emit.nodes.extend(inside.nodes)
    scale = emit("Mul", emit.constant(sums.scale), found.names[0])
    numbers = emit("Mul", emit.cast(sums.total, FLOAT), scale)
    return emit("Add", numbers, _shaped(emit, bias)) if bias else numbers


def _of_run(emit: Emitter, maker: NodeProto | None) -> _OfRun | None:
    if maker is None or not is_dequantize(maker) or not optional_input(maker, 2):
        return None
    data, scale, zero = maker.input
    graph = emit.graph
    found = scale in graph.constants or graph.shapes.get(scale) != ()
    if found or graph.dtypes.get(data) != UINT8 or graph.dtypes.get(scale) != FLOAT:
        return None
    return _OfRun(data, np.ones((), np.float32), np.zeros((), int), UINT8, names=(scale, zero))


def _shaped(emit: Emitter, bias: str) -> str:
    """A bias with one number for each channel, shaped to broadcast against the results."""
    axes = len(emit.shape(emit.input(0))) - 2
    return emit.reshape(bias, -1, *[1] * axes) if emit.node.op_type == "Conv" and axes else bias
