"""Types and shapes of tensors that ONNX cannot infer, written into a model for later inference.

The oracle's noise and a cut at a node need the types and shapes of all tensors behind them.
"""

from onnx import ModelProto, NodeProto, defs, helper

from ..onnx.skeleton import domain_of
from .graph import FLOATS, Graph


def remember_foreign(graph: Graph) -> None:
    """Note the floating-point tensors that are made by operators which ONNX cannot infer.

    graph: it has these operators rewritten as others, which make tensors of the same names.
    """
    made = (name for node in graph.proto.graph.node if _is_foreign(node) for name in node.output)
    known = (name for name in made if name in graph.shapes and graph.dtypes.get(name) in FLOATS)
    graph.foreign = [
        helper.make_tensor_value_info(name, graph.dtypes[name], graph.shapes[name])
        for name in known
        if name not in graph.output_names
    ]


def declare_foreign(proto: ModelProto, graph: Graph, *, shapes: bool) -> None:
    """Declare in a model the tensors that its graph noted, by their types alone or with shapes.

    shapes: whether the model has the sizes of the graph, which has room for the largest ones.
    """
    given = {value.name for value in proto.graph.output}
    for one in graph.foreign:
        if one.name not in given:
            declared = proto.graph.value_info.add()
            declared.CopyFrom(one)
            if not shapes:
                declared.type.tensor_type.ClearField("shape")


def _is_foreign(node: NodeProto) -> bool:
    if domain_of(node) or not defs.has(node.op_type):
        return True
    return not defs.get_schema(node.op_type).has_type_and_shape_inference_function
