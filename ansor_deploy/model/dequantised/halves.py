"""Half-precision networks with quantised activations: float32 between their integers.

    QuantizeLinear(x: float16) ; DequantizeLinear ; Conv: float16 ; QuantizeLinear
    -->
    QuantizeLinear(x: float32) ; DequantizeLinear ; Conv: float32 ; QuantizeLinear

Half precision is computed in float32 in the end (`relax/precision.py`). Here it is changed at once,
so that sums of bytes are found whichever precision a quantiser left around them. Inputs and outputs
of the model stay as they are.
"""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper

from ..graph.graph import HALVES, Graph, optional_input
from ..onnx.bind import model_inputs
from .real import is_quantize

_FLOAT = TensorProto.FLOAT
# Attributes that name an element type.
_TYPES = ("to", "dtype", "output_dtype", "precision", "stash_type", "softmax_precision")


def without_halves(graph: Graph) -> None:
    """Compute in float32 if half-precision activations are quantised.

    graph: its constants folded, its types known. A graph with nested graphs stays as it is.
    """
    if not any(_quantises_halves(graph, node) for node in graph.nodes) or graph.captured():
        return
    for name, tensor in list(graph.constants.items()):
        if tensor.data_type in HALVES:
            graph.keep(numpy_helper.from_array(_single(tensor), name))
    for node in graph.nodes:
        for attribute in node.attribute:
            _in_single(attribute)
    graph.nodes = [*_widened_inputs(graph), *graph.nodes, *_rounded_outputs(graph)]
    graph.infer()


def _quantises_halves(graph: Graph, node: NodeProto) -> bool:
    if not is_quantize(node) or node.input[0] in graph.constants:
        return False
    return graph.dtypes.get(optional_input(node, 1)) in HALVES


def _single(tensor: TensorProto) -> np.ndarray:
    return numpy_helper.to_array(tensor).astype(np.float32)


def _in_single(attribute: AttributeProto) -> None:
    """Make an attribute float32 if it names a half-precision type, or is a tensor of one."""
    if attribute.type == AttributeProto.TENSOR and attribute.t.data_type in HALVES:
        attribute.t.CopyFrom(numpy_helper.from_array(_single(attribute.t), attribute.t.name))
    if attribute.name in _TYPES and attribute.i in HALVES:
        attribute.i = _FLOAT


def _widened_inputs(graph: Graph) -> list[NodeProto]:
    """Casts of the model's inputs; the nodes read these instead of the inputs."""
    halves = [one.name for one in model_inputs(graph.proto) if graph.dtypes[one.name] in HALVES]
    wide = {name: graph.fresh(name) for name in halves}
    graph.rename_uses(wide)
    return [helper.make_node("Cast", [name], [wide[name]], to=_FLOAT) for name in halves]


def _rounded_outputs(graph: Graph) -> list[NodeProto]:
    """Casts to the model's outputs from the float32 tensors that the nodes make instead."""
    casts = []
    for node in graph.nodes:
        for at, name in enumerate(node.output):
            if name in graph.output_names and graph.dtypes.get(name) in HALVES:
                node.output[at] = graph.fresh(name)
                graph.rename_uses({name: node.output[at]})
                kind = graph.dtypes[name]
                casts.append(helper.make_node("Cast", [node.output[at]], [name], to=kind))
    return casts
