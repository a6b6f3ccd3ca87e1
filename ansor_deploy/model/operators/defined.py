"""Operators that ONNX defines by others: their nodes become the nodes of that definition."""

from onnx import NodeProto, TensorProto, defs, helper, inliner

from ...errors import ModelError
from ..graph.graph import Graph
from ..graph.subgraph import spliced
from ..onnx.skeleton import attribute, domain_of, name_of
from .operator import Operator


def definition(graph: Graph, node: NodeProto) -> list[NodeProto] | None:
    """The standard's definition of a node at the model's opset; None if there is none.

    A definition may depend on the types and ranks of the node's inputs.
    """
    given = list(dict.fromkeys(name for name in node.input if name))
    if not all(name in graph.dtypes for name in given):
        return None
    alone = helper.make_graph(
        [_completed(node, graph.opset)],
        "node",
        [helper.make_tensor_value_info(n, graph.dtypes[n], graph.shapes.get(n)) for n in given],
        [helper.make_empty_tensor_value_info(name) for name in node.output if name],
    )
    model = helper.make_model(alone, opset_imports=graph.proto.opset_import)
    named = [(domain_of(node), node.op_type)]
    try:
        body = inliner.inline_selected_functions(model, named, inline_schema_functions=True).graph
    except RuntimeError as error:  # the inliner has no types for inputs that are left out
        raise ModelError(
            f"node '{name_of(node)}': {node.op_type}: not with these inputs left out",
            "Replace it in the exporting framework, or cut the graph before it.",
        ) from error
    if len(body.node) == 1 and body.node[0].op_type == node.op_type:
        return None
    results = [name for name in node.output if name]
    return spliced(graph, body, {name: name for name in given}, results)


def _completed(node: NodeProto, opset: int) -> NodeProto:
    """The node with all attributes: the inliner drops those that are left at their defaults."""
    complete = NodeProto()
    complete.CopyFrom(node)
    version = 1 if domain_of(node) else opset
    given = {entry.name for entry in node.attribute}
    for name, one in defs.get_schema(node.op_type, version, domain_of(node)).attributes.items():
        if name not in given and one.default_value.name:
            complete.attribute.append(one.default_value)
    return complete


def _unless_float32(graph: Graph, node: NodeProto) -> list[NodeProto] | None:
    """The definition for all types but float32, since TVM's converters write float32 constants."""
    return None if graph.dtypes.get(node.input[0]) == TensorProto.FLOAT else definition(graph, node)


def _columns_first(graph: Graph, node: NodeProto) -> list[NodeProto] | None:
    """The definition if the order of the result's channels is not TVM's."""
    return definition(graph, node) if attribute(node, "mode") == "CRD" else None


_SINCE = {
    "BlackmanWindow": 17,
    "Celu": 12,
    "CenterCropPad": 18,
    "HammingWindow": 17,
    "HannWindow": 17,
    "LinearAttention": 27,
    "MeanVarianceNormalization": 9,
    "NegativeLogLikelihoodLoss": 12,
    "SoftmaxCrossEntropyLoss": 12,
    "SwiGLU": 28,
    "Swish": 24,
}

OPERATORS = (
    *(Operator(name, since=since, rewrite=definition) for name, since in _SINCE.items()),
    Operator("FlexAttention", domain="ai.onnx.preview", rewrite=definition),
    Operator("SpaceToDepth", rewrite=_columns_first),
    Operator("Elu", rewrite=_unless_float32),
    Operator("Selu", rewrite=_unless_float32),
)
