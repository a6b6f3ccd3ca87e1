"""The order of nodes: producers before consumers. ONNX asks for it, but not all files have it."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from ...errors import ModelError
from .skeleton import nested, uses


def order(nodes: Sequence[NodeProto]) -> list[int]:
    """The places of nodes, producers before consumers; otherwise the order stays as it is.

    ModelError for a cycle.
    """
    makers = {name: at for at, node in enumerate(nodes) for name in node.output if name}
    sorter = TopologicalSorter(
        {at: [makers[n] for n in uses(node) if n in makers] for at, node in enumerate(nodes)}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        raise ModelError("the graph has a cycle", "Export the model again.") from error
    ready: list[int] = []
    found = []
    while sorter.is_active():
        for at in sorter.get_ready():
            heappush(ready, at)
        found.append(heappop(ready))
        sorter.done(found[-1])
    return found


def sort_model(proto: ModelProto) -> None:
    """Sort the nodes of a model, also those of its functions and of nested graphs."""
    for body in (proto.graph, *proto.functions):
        _sort(body)


def _sort(body: GraphProto | FunctionProto) -> None:
    """Sort nodes in place, since they may be as large as the file."""
    found = order(body.node)
    if found != sorted(found):
        places = iter(sorted(range(len(found)), key=found.__getitem__))
        body.node.sort(key=lambda _: next(places))
    for node in body.node:
        for inner in nested(node):
            _sort(inner)
