"""Inference of one node from what is known of its inputs: far faster than the whole graph's."""

from collections.abc import Mapping
from functools import lru_cache

from onnx import NodeProto, TensorProto, TypeProto, defs, helper
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError, infer_node_outputs

from ..onnx.skeleton import domain_of, nested
from .graph import Graph


def infer_node(graph: Graph, node: NodeProto, constants: Mapping[str, TensorProto]) -> bool:
    """Find the types and shapes of a node's results; whether that was possible.

    constants: those whose values inference may read.
    """
    if domain_of(node) or not defs.has(node.op_type) or any(nested(node)):
        return False
    given = [name for name in node.input if name]
    if not all(graph.dtypes.get(name) for name in given):  # sequences and the like have none
        return False
    # A window larger than its data leaves a negative size, at which an assertion in a Slice's
    # inference would end the process.
    if any(min(graph.shapes.get(name, ()), default=0) < 0 for name in given):
        return False
    # Rewriting makes operators that are newer than the model's opset.
    known = defs.has(node.op_type, graph.opset, "")
    version = graph.opset if known else defs.onnx_opset_version()
    schema = defs.get_schema(node.op_type, version, "")
    types = {n: _type(graph.dtypes[n], graph.shapes.get(n)) for n in given}
    opsets = list(graph.proto.opset_import)
    try:
        made = infer_node_outputs(schema, node, types, dict(constants), opset_imports=opsets)
    except (InferenceError, RuntimeError, ValidationError):  # a branch never taken may not fit
        return False
    for name, kind in made.items():
        tensor = kind.tensor_type
        graph.dtypes[name] = tensor.elem_type
        if tensor.HasField("shape") and all(d.HasField("dim_value") for d in tensor.shape.dim):
            graph.shapes[name] = tuple(d.dim_value for d in tensor.shape.dim)
    return True


@lru_cache(4096)  # the tensors of a network have few types
def _type(kind: int, shape: tuple[int, ...] | None) -> TypeProto:
    return helper.make_tensor_type_proto(kind, shape)
