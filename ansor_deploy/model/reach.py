"""The largest row of a table that a run may read where it counts the indices itself.

RoBERTa and its successors count the tokens that are not padding and read a position for each. No
index is a constant, but the last one is known: that of a text without padding.
"""

from collections.abc import Callable, Mapping

from onnx import NodeProto, TensorProto

from .graph.graph import Graph, is_op

_AS_THEY_ARE = ("Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")  # keep values
_WHOLE = (TensorProto.INT32, TensorProto.INT64)
_ENDS = 2  # the place of the ends among a Slice's inputs
_END = 2**31 - 1  # an end from here on is that of the axis
_DEEP = 16  # the most nodes in a chain that are looked at


def reached(
    graph: Graph, made: Mapping[str, NodeProto], name: str, deep: int = _DEEP
) -> int | None:
    """The largest value of a tensor of integers if they come from counting; else None.

    made: the node that makes each tensor. deep: how many nodes of a chain are still looked at.
    """
    node = made.get(name)
    if node is None or not deep:
        return None

    def of(at: int) -> int | None:
        return reached(graph, made, node.input[at], deep - 1)

    if is_op(node, "Expand", *_AS_THEY_ARE):
        return _repeated(graph, node, of)
    if is_op(node, "CumSum"):
        return _counted(graph, made, node)
    if is_op(node, "Add", "Sub"):
        return _shifted(graph, node, of)
    if is_op(node, "Mul") and _is_bits(graph, made, node.input[1]):
        return of(0)
    return of(0) if is_op(node, "Slice") and _takes_the_last(graph, node) else None


def _repeated(graph: Graph, node: NodeProto, of: Callable[[int], int | None]) -> int | None:
    """The largest of the values that a node keeps: it may make too many of them to be folded."""
    value = graph.value(node.input[0])
    return of(0) if value is None or value.dtype.kind != "i" else int(value.max(initial=-1))


def _counted(graph: Graph, made: Mapping[str, NodeProto], node: NodeProto) -> int | None:
    """The largest count along an axis of zeros and ones: the size of the axis."""
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
    """Whether a Slice goes to the end of the axis."""
    ends = graph.value(node.input[2]) if len(node.input) > _ENDS else None
    return ends is not None and bool((ends >= _END).all())


def _is_bits(graph: Graph, made: Mapping[str, NodeProto], name: str) -> bool:
    """Whether a tensor's values are 0 or 1: it comes from booleans, or is an input named a mask."""
    node = made.get(name)
    while node is not None and is_op(node, *_AS_THEY_ARE):
        name = node.input[0]
        node = made.get(name)
    kind = graph.dtypes.get(name)
    is_mask = name not in made and "mask" in name.lower() and kind in _WHOLE
    return is_mask or kind == TensorProto.BOOL
