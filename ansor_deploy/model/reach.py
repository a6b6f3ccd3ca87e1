"""The largest row that a run may read of a table where it counts as it goes.

RoBERTa and what follows it count the tokens that are no padding, and read a position for each: no
index is a constant, but the last is known, that of a text without padding.
"""

from collections.abc import Callable, Mapping

from onnx import NodeProto, TensorProto

from .graph.graph import Graph, is_op

_AS_THEY_ARE = ("Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
_DEEP = 16  # nodes behind one another


def reached(
    graph: Graph, made: Mapping[str, NodeProto], name: str, deep: int = _DEEP
) -> int | None:
    """The most that a tensor's whole numbers are, if they are counted; None if they are not.

    made: the node that makes each tensor. deep: how many nodes behind one another are looked at.
    """
    node = made.get(name)
    if node is None or not deep:
        return None

    def of(at: int) -> int | None:
        return reached(graph, made, node.input[at], deep - 1)

    if is_op(node, *_AS_THEY_ARE):
        return of(0)
    if is_op(node, "CumSum"):
        return _counted(graph, made, node)
    if is_op(node, "Add"):
        return _shifted(graph, node, of)
    if is_op(node, "Mul") and _is_bits(graph, made, node.input[1]):
        return of(0)
    return None


def _counted(graph: Graph, made: Mapping[str, NodeProto], node: NodeProto) -> int | None:
    """How many there are along an axis, of what is one or none each."""
    shape, axis = graph.shapes.get(node.input[0]), graph.value(node.input[1])
    if not shape or axis is None or not _is_bits(graph, made, node.input[0]):
        return None
    return shape[int(axis.item())]


def _shifted(graph: Graph, node: NodeProto, of: Callable[[int], int | None]) -> int | None:
    for at, other in ((0, 1), (1, 0)):
        by, most = graph.value(node.input[other]), of(at)
        if most is not None and by is not None and by.size == 1:
            return most + int(by.item())
    return None


def _is_bits(graph: Graph, made: Mapping[str, NodeProto], name: str) -> bool:
    """Whether a tensor's numbers are 0 and 1, as they are of what was true or false."""
    node = made.get(name)
    while node is not None and is_op(node, *_AS_THEY_ARE):
        name = node.input[0]
        node = made.get(name)
    return graph.dtypes.get(name) == TensorProto.BOOL
