"""Which models are quantised, and how far apart the values of their outputs lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onnx import numpy_helper

from ..onnx.skeleton import nodes

if TYPE_CHECKING:
    import onnx

# Operators that round to the steps of a scale.
_QUANTISING = (
    "DynamicQuantizeLSTM", "DynamicQuantizeLinear", "DynamicQuantizeMatMul", "QuantizeLinear",
)  # fmt: skip
# Operators that pass values on as they are.
_MOVING = (
    "Concat", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze",
    "Transpose", "Unsqueeze",
)  # fmt: skip


def steps_of(proto: onnx.ModelProto) -> Mapping[str, float] | None:
    """The distance between values of each output, by its name; 0 where it is not known.

    None for a model without quantised tensors.
    """
    operators = {node.op_type for node in nodes(proto.graph)}
    if not any(one in _QUANTISING or "QLinear" in one for one in operators):
        return None
    makers = {name: node for node in proto.graph.node for name in node.output}
    constants = {one.name: one for one in proto.graph.initializer}
    return {out.name: _step(out.name, makers, constants) for out in proto.graph.output}


def _step(name: str, makers: Mapping[str, Any], constants: Mapping[str, Any]) -> float:
    node = makers.get(name)
    while node is not None and node.op_type in _MOVING:
        node = makers.get(node.input[0])
    if node is None or node.op_type != "DequantizeLinear" or node.input[1] not in constants:
        return 0.0
    return float(numpy_helper.to_array(constants[node.input[1]]).max(initial=0.0))
