"""A model that adds up many numbers in float64, since an oracle must not be off itself.

ONNX Runtime adds float32 in a few lanes, one number after the other. For 786,432 positive numbers
its mean is off by 230 roundings, that of an image by 570, a sum along the first axis by 4,270. Its
Fourier transform of 321 numbers is off by 100 times as much as that of 512. Its distances of rows
are sums of products that cancel out, and of an infinity they are NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from onnx import ModelProto, NodeProto, TensorProto, helper

from ..graph.graph import Graph, is_op
from ..onnx.skeleton import attribute
from .emitter import Emitter, expanded
from .long_sums import MANY_IN_ONE

_FLOAT, _DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE


def with_wide_sums(proto: ModelProto) -> ModelProto:
    """The model with long sums and transforms in float64; the same model if it has none."""
    if not any(_is_known(node) for node in proto.graph.node):
        return proto
    graph = Graph.of(proto)
    graph.infer()
    made = [one for node in graph.nodes for one in _widened(graph, node)]
    if made == graph.nodes:
        return proto
    graph.nodes = made
    return graph.to_proto()


def _widened(graph: Graph, node: NodeProto) -> list[NodeProto]:
    """The nodes that replace a node."""
    if not _is_known(node) or graph.dtypes.get(node.input[0]) != _FLOAT:
        return [node]
    count, function = _WIDENED[node.op_type]
    plain = len([name for name in node.output if name]) == 1
    if not plain or (count and not _is_long(graph, node, count)):
        return [node]
    return expanded(graph, node, function) or [node]


def _is_known(node: NodeProto) -> bool:
    return is_op(node, *_WIDENED) or (node.domain, node.op_type) == ("com.microsoft", "CDist")


def _is_long(graph: Graph, node: NodeProto, count: _Count) -> bool:
    """Whether a node adds up many elements."""
    shape, made = (graph.shapes.get(name) for name in (node.input[0], node.output[0]))
    return bool(shape and made is not None and count(node, shape, made) >= MANY_IN_ONE)


def _of_result(node: NodeProto, shape: tuple[int, ...], made: tuple[int, ...]) -> int:
    """The number of elements that are reduced to each result."""
    return prod(shape) // max(1, prod(made))


def _of_image(node: NodeProto, shape: tuple[int, ...], made: tuple[int, ...]) -> int:
    return prod(shape[2:])


def _of_row(node: NodeProto, shape: tuple[int, ...], made: tuple[int, ...]) -> int:
    return prod(shape[attribute(node, "axis", -1) % len(shape) :])


def _length(emit: Emitter) -> str | None:
    """The length of vectors: ReduceL2. None if its axes are not known."""
    given = emit.graph.value(emit.input(1)) if emit.input(1) else None
    axes = emit.attribute("axes") if given is None else given.tolist()
    if not axes:
        return None
    wide = emit.cast(emit.input(0), _DOUBLE)
    keep = emit.attribute("keepdims", 1)
    total = emit.reduce("ReduceSum", emit("Mul", wide, wide), *axes, keepdims=keep)
    return emit.cast(emit("Sqrt", total), _FLOAT)


def _distances(emit: Emitter) -> str:
    """The distance of each row to each row of another matrix: CDist."""
    wide = (emit.unsqueeze(emit.cast(emit.input(at), _DOUBLE), 1 - at) for at in range(2))
    apart = emit("Sub", *wide)
    total = emit.reduce("ReduceSum", emit("Mul", apart, apart), 2, keepdims=0)
    is_root = emit.attribute("metric", "sqeuclidean") == "euclidean"
    return emit.cast(emit("Sqrt", total) if is_root else total, _FLOAT)


def _same(emit: Emitter) -> str:
    """The same reduction or transform."""
    node = emit.node
    words = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    wide = emit.cast(emit.input(0), _DOUBLE)
    return emit.cast(emit(node.op_type, wide, *node.input[1:], **words), _FLOAT)


def _averaged(emit: Emitter) -> str:
    """The mean of each channel."""
    wide = emit.cast(emit.input(0), _DOUBLE)
    axes = range(2, len(emit.shape(emit.input(0))))
    return emit.cast(emit.reduce("ReduceMean", wide, *axes), _FLOAT)


def _by_instance(emit: Emitter) -> str:
    """Each channel of an image, normalised."""
    rank = len(emit.shape(emit.input(0)))
    scale, bias = (emit.reshape(emit.input(at), -1, *[1] * (rank - 2)) for at in (1, 2))
    return emit("Add", emit("Mul", _normal(emit, *range(2, rank)), scale), bias)


def _by_row(emit: Emitter) -> str:
    """Each row, normalised."""
    rank = len(emit.shape(emit.input(0)))
    axes = range(emit.attribute("axis", -1) % rank, rank)
    scaled = emit("Mul", _normal(emit, *axes), emit.input(1))
    return emit("Add", scaled, emit.input(2)) if emit.input(2) else scaled


def _normal(emit: Emitter, *axes: int) -> str:
    """The input minus its mean, divided by its deviation."""
    wide = emit.cast(emit.input(0), _DOUBLE)
    apart = emit("Sub", wide, emit.reduce("ReduceMean", wide, *axes))
    variance = emit.reduce("ReduceMean", emit("Mul", apart, apart), *axes)
    epsilon = emit.constant(emit.attribute("epsilon", 1e-5), _DOUBLE)
    return emit.cast(emit("Div", apart, emit("Sqrt", emit("Add", variance, epsilon))), _FLOAT)


_Count = Callable[[NodeProto, tuple[int, ...], tuple[int, ...]], int]
# What counts the elements of a sum, None for operators that are always widened; what widens them.
_WIDENED: dict[str, tuple[_Count | None, Callable[[Emitter], str | None]]] = {
    "CDist": (None, _distances),
    "DFT": (None, _same),
    "GlobalAveragePool": (_of_result, _averaged),
    "InstanceNormalization": (_of_image, _by_instance),
    "LayerNormalization": (_of_row, _by_row),
    "ReduceL2": (_of_result, _length),
    "ReduceMean": (_of_result, _same),
    "ReduceSum": (_of_result, _same),
    "ReduceSumSquare": (_of_result, _same),
}
