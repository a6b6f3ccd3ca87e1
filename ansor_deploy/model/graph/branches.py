"""What branches of an If compute, as nodes of the graph around it."""

from collections.abc import Collection

from onnx import GraphProto, NodeProto, TensorProto

from ..onnx.bind import declared_shape, model_inputs
from ..onnx.skeleton import cone, nested
from .graph import Graph, is_op
from .subgraph import rename, renamed, spliced


def open_choices(graph: Graph) -> None:
    """Put both branches of each If beside it, too, if its condition needs single inputs alone.

    A caller chooses either branch, such as by a sampling rate, so that both have to be right. That
    is not so for a flag, which may say that other inputs are not used: a cache that is still empty.
    """
    single = [v for v in model_inputs(graph.proto) if declared_shape(v) in ((), (1,))]
    free = {v.name for v in single if v.type.tensor_type.elem_type != TensorProto.BOOL}
    for node in graph.nodes:  # the nodes that are added have their turn, too
        if not is_op(node, "If"):
            continue
        read = cone(graph.nodes, node.input)[1] - graph.constants.keys()
        for body in nested(node) if read and read <= free else ():
            results = [graph.fresh(name) for name in node.output]
            graph.nodes.extend(spliced(graph, body, {}, results))


def hoist_constants(graph: Graph, operators: Collection[str]) -> bool:
    """Move nodes of these operators out of branches if they read nothing but constants.

    Then a branch has known shapes, such as those that exporters compute for a Pad.

    Returns:
        Whether any node was moved.
    """
    branches = [body for node in graph.nodes if is_op(node, "If") for body in nested(node)]
    moved = [node for body in branches for node in _hoisted(graph, body, operators)]
    graph.nodes[:0] = moved
    return bool(moved)


def _hoisted(graph: Graph, body: GraphProto, operators: Collection[str]) -> list[NodeProto]:
    """The nodes to put before the If; what stays in the branch reads their results."""
    results = {value.name for value in body.output}
    names: dict[str, str] = {}
    moved, kept = [], []
    for node in body.node:
        known = all(name in names or name in graph.constants for name in node.input)
        if known and is_op(node, *operators) and results.isdisjoint(node.output):
            names.update((name, graph.fresh(name)) for name in node.output)
            moved.append(renamed(node, names))
        else:
            rename(node, names)
            kept.append(node)
    if moved:
        del body.node[:]
        body.node.extend(kept)
    return moved
