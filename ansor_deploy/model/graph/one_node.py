"""Inference of a node alone, of what is known of its inputs: of a graph's many it takes no time."""

from collections.abc import Mapping

from onnx import NodeProto, TensorProto, defs, helper
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError, infer_node_outputs

from ..onnx.skeleton import domain_of, nested
from .graph import Graph


def infer_node(graph: Graph, node: NodeProto, constants: Mapping[str, TensorProto]) -> bool:
    """Find the types and shapes of what a node makes; whether its operator is one that says so.

    constants: what inference may ask the values of.
    """
    if domain_of(node) or not defs.has(node.op_type) or any(nested(node)):
        return False
    given = [name for name in node.input if name]
    if not all(graph.dtypes.get(name) for name in given):  # what is no tensor has none
        return False
    # A window larger than its data left it: an assertion of a Slice's inference ends the process.
    if any(min(graph.shapes.get(name, ()), default=0) < 0 for name in given):
        return False
    # Rewriting makes operators that are younger than the model.
    known = defs.has(node.op_type, graph.opset, "")
    version = graph.opset if known else defs.onnx_opset_version()
    schema = defs.get_schema(node.op_type, version, "")
    types = {n: helper.make_tensor_type_proto(graph.dtypes[n], graph.shapes.get(n)) for n in given}
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
