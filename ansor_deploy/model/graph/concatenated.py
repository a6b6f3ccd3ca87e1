"""Concatenations of what layers make: norms, activations and splits behind them go before them.

    y = Relu(BatchNormalization(Concat(Conv(a), Conv(b))))
    -->
    y = Concat(Relu(BatchNormalization(Conv(a))), Relu(BatchNormalization(Conv(b))))

The norm of a part becomes part of the convolution's weights, and its activation is computed on the
convolution's result before it is stored. Behind the concatenation both would take a kernel that
reads and writes all of it. A Split between parts gives the parts themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, helper

from ..onnx.skeleton import attribute
from .graph import Graph, Shape, is_op

# They make a tensor whose readers a kernel can compute with it.
_LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_UNARY = (
    *("Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Clip", "Sigmoid", "HardSigmoid", "HardSwish"),
    *("Tanh", "Softplus", "Softsign", "Mish", "Gelu", "Erf", "Neg", "Abs"),
)
_BINARY = ("Mul", "Add", "Sub", "Div", "PRelu")
_NORM = "BatchNormalization"


@dataclass(frozen=True)
class _Region:
    """Nodes that compute each element of `result` from the same element of a concatenation.

    axis: of the concatenation. sizes: of its parts along that axis.
    """

    concat: NodeProto
    nodes: tuple[NodeProto, ...]
    result: str
    axis: int
    sizes: tuple[int, ...]


def split_at_parts(graph: Graph) -> None:
    """Compute what follows a concatenation of layers' results on each of its parts."""
    consumers, producers = graph.consumers(), graph.producers()
    concats = [node for node in graph.nodes if is_op(node, "Concat")]
    if found := [node for node in concats if _of_layers(graph, node, consumers, producers)]:
        graph.infer()
    for node in found:
        region = _region(graph, node, consumers)
        if region is not None and (values := _values_of_parts(graph, region)) is not None:
            _put_in_front(graph, region, values)
    _give_parts(graph)


def _give_parts(graph: Graph) -> None:
    """Let a Split of a concatenation between its parts give the parts, or their concatenations."""
    producers = graph.producers()
    for node in [node for node in graph.nodes if is_op(node, "Split")]:
        pieces = _pieces(graph, producers.get(node.input[0]), node)
        if pieces is not None:
            graph.replace(node, list(_joined(node, pieces)))


def _pieces(graph: Graph, concat: NodeProto | None, split: NodeProto) -> list[list[str]] | None:
    """The parts that each result of the Split consists of; None if it cuts a part."""
    if concat is None or not is_op(concat, "Concat"):
        return None
    if not graph.shapes.keys() >= {*concat.input, *split.output}:
        return None
    rank = len(graph.shapes[concat.input[0]])
    axis = attribute(split, "axis", 0) % rank
    if attribute(concat, "axis", 1) % rank != axis:
        return None
    parts, pieces = deque(concat.input), list[list[str]]()
    for name in split.output:
        piece, left = list[str](), graph.shapes[name][axis]
        while left > 0:
            piece.append(parts.popleft())
            left -= graph.shapes[piece[-1]][axis]
        if left or not piece:
            return None
        pieces.append(piece)
    return pieces


def _joined(split: NodeProto, pieces: list[list[str]]) -> Iterator[NodeProto]:
    axis = attribute(split, "axis", 0)
    for name, piece in zip(split.output, pieces, strict=True):
        if len(piece) == 1:
            yield helper.make_node("Identity", piece, [name], name=name)
        else:
            yield helper.make_node("Concat", piece, [name], name=name, axis=axis)


def _of_layers(
    graph: Graph,
    concat: NodeProto,
    consumers: dict[str, list[NodeProto]],
    producers: dict[str, NodeProto],
) -> bool:
    """Whether a layer makes a part, and nothing but the concatenation reads the parts."""
    alone = len(set(concat.input)) == len(concat.input) and all(
        len(consumers[name]) == 1 and name not in graph.output_names for name in concat.input
    )
    makers = [producers[name] for name in concat.input if name in producers]
    return alone and any(is_op(maker, *_LAYERS) for maker in makers)


def _region(
    graph: Graph, concat: NodeProto, consumers: dict[str, list[NodeProto]]
) -> _Region | None:
    """The most nodes behind the concatenation that work by element; None if there are none.

    None also if more than one of their tensors is read elsewhere.
    """
    shapes = [graph.shapes.get(name) for name in concat.input]
    shape = graph.shapes.get(concat.output[0])
    if shape is None or None in shapes:
        return None
    inside, found = {concat.output[0]}, list[NodeProto]()
    for node in graph.nodes:
        if _by_element(graph, node, inside, shape):
            inside.update(node.output)
            found.append(node)
    known = set(map(id, found))
    left = [
        name
        for name in sorted(inside)
        if name in graph.output_names or any(id(one) not in known for one in consumers[name])
    ]
    if not found or len(left) != 1 or left == concat.output:
        return None
    axis = attribute(concat, "axis", 1) % len(shape)
    sizes = tuple(one[axis] for one in shapes if one is not None)
    return _Region(concat, tuple(found), left[0], axis, sizes)


def _by_element(graph: Graph, node: NodeProto, inside: set[str], shape: Shape) -> bool:
    """Whether a node computes each element of its result from the same elements of tensors inside.

    Its other inputs are constants.
    """
    if inside.isdisjoint(node.input) or graph.shapes.get(node.output[0]) != shape:
        return False
    others = [name for name in node.input if name and name not in inside]
    if len(node.output) > 1 or not all(name in graph.constants for name in others):
        return False
    norm = is_op(node, _NORM) and not attribute(node, "training_mode", 0)
    return norm or is_op(node, *_UNARY) or (is_op(node, *_BINARY) and graph.opset >= 7)


def _values_of_parts(graph: Graph, region: _Region) -> dict[str, list[np.ndarray]] | None:
    """What each constant of the region is for each part; None if nodes differ about that."""
    found: dict[str, list[np.ndarray]] = {}
    rank = len(graph.shapes[region.result])
    for node in region.nodes:
        # The constants of a norm have one axis, that of channels; the others end at the last axis.
        last = 1 if is_op(node, _NORM) else rank - 1
        for name in [name for name in node.input if name in graph.constants]:
            value = graph.value(name)
            parts = None if value is None else _cut(value, region, last)
            if parts is None or (name in found and found[name][0].shape != parts[0].shape):
                return None
            found[name] = parts
    return found


def _cut(value: np.ndarray, region: _Region, last: int) -> list[np.ndarray] | None:
    """A constant's values for each part; None if its size is neither 1 nor that of all parts.

    last: the axis of the tensor that the last axis of the constant belongs to.
    """
    axis = value.ndim - 1 - last + region.axis
    if not 0 <= axis < value.ndim or value.shape[axis] == 1:
        return [value] * len(region.sizes)
    if value.shape[axis] != sum(region.sizes):
        return None
    return np.split(value, np.cumsum(region.sizes)[:-1], axis)


def _put_in_front(graph: Graph, region: _Region, values: dict[str, list[np.ndarray]]) -> None:
    """Put the region in front of the concatenation, once for each part."""
    parts, made = list[str](), list[NodeProto]()
    for at, part in enumerate(region.concat.input):
        names = {region.concat.output[0]: part}
        for name, cut in values.items():
            same = cut[at].shape == tuple(graph.constants[name].dims)
            names[name] = name if same else graph.add_constant(cut[at], name)
        made.extend(_renamed(graph, region, names))
        parts.append(names[region.result])
        graph.shapes[parts[-1]] = graph.shapes[part]
    region.concat.input[:] = parts
    region.concat.output[0] = region.result
    for node in region.nodes:
        graph.replace(node, [])
    graph.replace(region.concat, [*made, region.concat])


def _renamed(graph: Graph, region: _Region, names: dict[str, str]) -> Iterator[NodeProto]:
    """The nodes of the region for one part; `names` gets the names of their results."""
    for node in region.nodes:
        own = deepcopy(node)
        own.name = own.output[0] = graph.fresh(node.output[0])
        names[node.output[0]] = own.name
        own.input[:] = [names.get(name, name) for name in node.input]
        yield own
