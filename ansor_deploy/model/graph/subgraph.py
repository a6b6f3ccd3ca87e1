"""Nested graphs: put a branch, a body or a definition in the place of its node."""

from collections.abc import Mapping, Sequence
from copy import deepcopy

from onnx import GraphProto, NodeProto, TensorProto, helper

from ..onnx.skeleton import attribute, nested
from .graph import Graph, is_op


def resolve_branches(graph: Graph) -> bool:
    """Replace each If with a constant condition by the branch that is taken.

    Returns:
        Whether there was such an If.
    """
    known = [n for n in graph.nodes if is_op(n, "If") and n.input[0] in graph.constants]
    for node in known:
        taken = attribute(node, "then_branch" if graph.value(node.input[0]) else "else_branch")
        graph.replace(node, spliced(graph, taken, {}, node.output))
    return bool(known)


def spliced(
    graph: Graph, body: GraphProto, arguments: Mapping[str, str], results: Sequence[str]
) -> list[NodeProto]:
    """The nodes of a nested graph as nodes of the graph around it, which keeps its constants.

    arguments: for the name of each input of the body, the tensor to use. results: the names that
    the body's outputs get. All other tensors of the body get fresh names.
    """
    names = {**arguments, **adopt_constants(graph, body)}
    made = {name for node in body.node for name in node.output if name}
    names.update((name, graph.fresh(name)) for name in sorted(made))
    nodes = [renamed(node, names) for node in body.node]
    gives = [names.get(value.name, value.name) for value in body.output]
    return nodes + [
        helper.make_node("Identity", [give], [result])
        for give, result in zip(gives, results, strict=False)
        if result
    ]


def adopt_constants(graph: Graph, body: GraphProto) -> dict[str, str]:
    """Copy a nested graph's constants to the graph around it; returns new names by old ones."""
    names = {}
    for tensor in body.initializer:
        kept = TensorProto()
        kept.CopyFrom(tensor)
        kept.name = names[tensor.name] = graph.fresh(tensor.name)
        graph.keep(kept)
        graph.dtypes[kept.name], graph.shapes[kept.name] = kept.data_type, tuple(kept.dims)
    return names


def renamed(node: NodeProto, names: Mapping[str, str]) -> NodeProto:
    """A copy of a node, without a name, that reads and makes tensors of other names, nested too."""
    copy = deepcopy(node)
    copy.name = ""  # names of nodes have to be unique
    rename(copy, names)
    return copy


def rename(node: NodeProto, names: Mapping[str, str]) -> None:
    """Let a node, and the graphs nested in it, read and make tensors of other names."""
    for field in (node.input, node.output):
        field[:] = [names.get(name, name) for name in field]
    for body in nested(node):
        for inner in body.node:
            rename(inner, names)
        for value in body.output:
            value.name = names.get(value.name, value.name)
