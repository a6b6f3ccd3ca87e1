"""The largest row that a run may read of a table where it counts as it goes.

RoBERTa and what follows it count the tokens that are no padding, and read a position for each: no
index is a constant, but the last is known, that of a text without padding.
"""

from collections.abc import Callable, Mapping

from onnx import NodeProto, TensorProto

from .graph.graph import Graph, is_op

_AS_THEY_ARE = ("Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
_WHOLE = (TensorProto.INT32, TensorProto.INT64)
_ENDS, _END = 2, 2**31 - 1  # the input of a Slice, and what is behind any end
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
    if is_op(node, "Add", "Sub"):
        return _shifted(graph, node, of)
    if is_op(node, "Mul") and _is_bits(graph, made, node.input[1]):
        return of(0)
    return of(0) if is_op(node, "Slice") and _takes_the_last(graph, node) else None


def _counted(graph: Graph, made: Mapping[str, NodeProto], node: NodeProto) -> int | None:
    """How many there are along an axis, of what is one or none each."""
    shape, axis = graph.shapes.get(node.input[0]), graph.value(node.input[1])
    if not shape or axis is None or not _is_bits(graph, made, node.input[0]):
        return None
    return shape[int(axis.item())]


def _shifted(graph: Graph, node: NodeProto, of: Callable[[int], int | None]) -> int | None:
    sign, places = (-1, ((0, 1),)) if node.op_type == "Sub" else (1, ((0, 1), (1, 0)))
    for at, other in places:
        by, most = graph.value(node.input[other]), of(at)
        if most is not None and by is not None and by.size == 1:
            return most + sign * int(by.item())
    return None


def _takes_the_last(graph: Graph, node: NodeProto) -> bool:
    """Whether a Slice takes what there is up to the end."""
    ends = graph.value(node.input[2]) if len(node.input) > _ENDS else None
    return ends is not None and bool((ends >= _END).all())


def _is_bits(graph: Graph, made: Mapping[str, NodeProto], name: str) -> bool:
    """Whether a tensor's numbers are 0 and 1: of what was true or false, or of an input's mask."""
    node = made.get(name)
    while node is not None and is_op(node, *_AS_THEY_ARE):
        name = node.input[0]
        node = made.get(name)
    kind = graph.dtypes.get(name)
    is_mask = name not in made and "mask" in name.lower() and kind in _WHOLE
    return is_mask or kind == TensorProto.BOOL
