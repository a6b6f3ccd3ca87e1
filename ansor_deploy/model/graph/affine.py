"""Fold per-channel scales and offsets into the weights of the layer before them.

BatchNormalization, and Mul, Add, Sub, Div by per-channel constants are all y = scale * x + offset.
A chain of them is composed in float64 and written once, so that nothing is rounded twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, helper

from ..onnx.skeleton import attribute
from .graph import FLOATS, Graph, Shape, is_op, optional_input

_LAYERS = ("Conv", "ConvTranspose", "Gemm")
_BINARY = ("Mul", "Add", "Sub", "Div")


@dataclass(frozen=True)
class Row:
    """A chain of nodes that together compute y = scale * x + offset along axis 1.

    Nothing else reads their intermediate results. data: the tensor that the first node reads.
    scale, offset: float64, of shape (channels,) or ().
    """

    data: str
    nodes: tuple[NodeProto, ...]
    scale: np.ndarray
    offset: np.ndarray

    @property
    def result(self) -> str:
        """The name of the tensor that the last node makes."""
        return str(self.nodes[-1].output[0])

    def fits(self, graph: Graph) -> bool:
        """Whether its factors are finite in the type of the data."""
        kind = helper.tensor_dtype_to_np_dtype(graph.dtypes[self.data])
        return all(np.isfinite(one.astype(kind)).all() for one in (self.scale, self.offset))

    def then(self, after: Row) -> Row:
        """The chain that computes this row first and then `after` on its result."""
        offset = after.scale * self.offset + after.offset
        return Row(self.data, self.nodes + after.nodes, after.scale * self.scale, offset)


@np.errstate(all="ignore")
def fold_affine(graph: Graph) -> None:
    """Conv -> BatchNormalization -> Mul -> Add --> Conv; with no layer before: --> Mul -> Add.

    A layer (Conv, ConvTranspose, Gemm) absorbs the row if nothing else reads its result.
    """
    graph.infer()
    consumers, producers = graph.consumers(), graph.producers()
    for row in _rows(graph, consumers):
        layer = producers.get(row.data)
        sole = len(consumers[row.data]) == 1 and row.data not in graph.output_names
        if layer is not None and sole and _absorb(graph, layer, row):
            layer.output[0] = row.result
            _replace(graph, row, [])
        else:
            _rewrite(graph, row, consumers[row.result])


def _rounds(node: NodeProto) -> bool:
    """Whether a node makes whole numbers of floats."""
    if is_op(node, "Cast"):
        return attribute(node, "to") not in FLOATS
    return is_op(node, "Ceil", "Floor", "Round")


def _rows(graph: Graph, consumers: dict[str, list[NodeProto]]) -> list[Row]:
    """The longest rows, in the order of the graph."""
    rows: list[Row] = []
    taken: set[int] = set()
    for node in graph.nodes:
        row = None if id(node) in taken else link(graph, node)
        if row is not None:
            rows.append(_extend(graph, row, consumers))
            taken.update(map(id, rows[-1].nodes))
    return rows


def _extend(graph: Graph, row: Row, consumers: dict[str, list[NodeProto]]) -> Row:
    while row.result not in graph.output_names and len(consumers[row.result]) == 1:
        after = link(graph, consumers[row.result][0])
        if after is None or after.data != row.result or not (longer := row.then(after)).fits(graph):
            break
        row = longer
    return row


def link(graph: Graph, node: NodeProto) -> Row | None:
    """An affine node as a row of one node; None for any other node."""
    if is_op(node, "BatchNormalization"):
        return _of_batch_norm(graph, node)
    if is_op(node, *_BINARY) and graph.opset >= 7:  # before that, broadcasting had attributes
        return _of_binary(graph, node)
    return None


def _of_batch_norm(graph: Graph, node: NodeProto) -> Row | None:
    values = [graph.value(name) for name in node.input[1:]]
    training = attribute(node, "training_mode", 0) or any(node.output[1:])
    if training or any(v is None or v.ndim != 1 for v in values) or graph.opset < 7:
        return None
    gamma, beta, mean, variance = (np.asarray(v, np.float64) for v in values)
    scale = gamma / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
    return Row(node.input[0], (node,), scale, beta - mean * scale)


def _of_binary(graph: Graph, node: NodeProto) -> Row | None:
    left, right = node.input
    data, constant = (right, left) if left in graph.constants else (left, right)
    value, reverse = _per_channel(graph, data, constant), data == right
    if value is None or data in graph.constants or (reverse and node.op_type == "Div"):
        return None
    scale, offset = {
        "Mul": (value, 0),
        "Div": (1 / value, 0),
        "Add": (1, value),
        "Sub": (-1, value) if reverse else (1, -value),
    }[node.op_type]
    return Row(data, (node,), np.asarray(scale, np.float64), np.asarray(offset, np.float64))


def _per_channel(graph: Graph, data: str, constant: str) -> np.ndarray | None:
    """A constant as float64 of shape () or (channels,) if it broadcasts so against the data."""
    shape, value = graph.shapes.get(data), graph.value(constant)
    if value is None or shape is None or graph.dtypes.get(data) not in FLOATS:
        return None
    aligned = (1,) * (len(shape) - value.ndim) + value.shape
    scalar = value.size == 1 and value.ndim <= len(shape)
    if not scalar and (len(shape) < 2 or aligned != _channel_shape(shape)):
        return None
    return value.astype(np.float64).reshape(() if scalar else -1)


def _channel_shape(shape: Shape) -> Shape:
    return tuple(size if axis == 1 else 1 for axis, size in enumerate(shape))


def _rewrite(graph: Graph, row: Row, consumers: list[NodeProto]) -> None:
    """Write the row as Mul and Add if it has a BatchNormalization, or becomes shorter by that.

    A row that is rounded afterwards keeps its steps: the last bit may decide which whole number
    follows, as where relative positions are counted in buckets.
    """
    shape = graph.shapes.get(row.data)
    operands = None if shape is None else _operands(graph, row, shape)
    if operands is None:
        return
    normalises = any(is_op(node, "BatchNormalization") for node in row.nodes)
    shorter = len(operands) < len(row.nodes) and not any(map(_rounds, consumers))
    if normalises or shorter:
        _replace(graph, row, _mul_add(graph, row, operands))


def _operands(graph: Graph, row: Row, shape: Shape) -> dict[str, np.ndarray] | None:
    """The constants of the Mul and the Add, without those that change nothing."""
    dtype = helper.tensor_dtype_to_np_dtype(graph.dtypes[row.data])
    operands = {}
    for op, value, neutral in (("Mul", row.scale, 1), ("Add", row.offset, 0)):
        constant = value.astype(dtype)
        if not is_finite(constant):
            return None
        if (constant != neutral).any():
            # One axis more than the data has would enlarge the result.
            operands[op] = constant.reshape(_channel_shape(shape) if constant.ndim else ())
    return operands


def _mul_add(graph: Graph, row: Row, operands: dict[str, np.ndarray]) -> list[NodeProto]:
    if not operands:
        return [helper.make_node("Identity", [row.data], [row.result])]
    made: list[NodeProto] = []
    data = row.data
    for op, value in operands.items():
        constant = graph.add_constant(value, f"{row.result}_{op.lower()}")
        made.append(helper.make_node(op, [data, constant], [graph.fresh(row.result)]))
        data = made[-1].output[0]
    made[-1].output[0] = row.result
    return made


def _replace(graph: Graph, row: Row, new: list[NodeProto]) -> None:
    """Put new nodes in the place of the row's last one, and remove the others."""
    for node in row.nodes[:-1]:
        graph.replace(node, [])
    graph.replace(row.nodes[-1], new)


def _absorb(graph: Graph, layer: NodeProto, row: Row) -> bool:
    """Make the layer compute the row of its result instead of its result; whether it could.

    It cannot if its weights are not constant, or if the new ones are not finite in their type.
    """
    weight = graph.value(layer.input[1]) if is_op(layer, *_LAYERS) else None
    if weight is None:
        return False
    groups, inputs, outputs, taps = _by_channel(layer, weight.shape)
    bias = bias_of(graph, layer, groups * outputs)
    if bias is None:
        return False
    scale = np.broadcast_to(row.scale, bias.shape).reshape(groups, 1, outputs, 1)
    scaled = weight.astype(np.float64).reshape(groups, inputs, outputs, taps) * scale
    new_weight = scaled.reshape(weight.shape).astype(weight.dtype)
    new_bias = (bias * row.scale + row.offset).astype(weight.dtype)
    if not (is_finite(new_weight) and is_finite(new_bias)):
        return False
    rewrite_layer(graph, layer, new_weight, new_bias)
    return True


def _by_channel(layer: NodeProto, shape: Shape) -> tuple[int, int, int, int]:
    """The weight's shape as (groups, inputs, outputs, taps): a group's output is a channel."""
    if layer.op_type == "Conv" or attribute(layer, "transB", 0):  # (out, ...)
        return shape[0], math.prod(shape[1:]), 1, 1
    groups = int(attribute(layer, "group", 1))  # (in, out / group, ...), one group after another
    return groups, shape[0] // groups, shape[1], math.prod(shape[2:])


def bias_of(graph: Graph, layer: NodeProto, channels: int) -> np.ndarray | None:
    """The bias as float64 of shape (channels,), zeros if there is none; None if it does not fit."""
    name = optional_input(layer, 2)
    value = graph.value(name) if name else np.zeros(channels)
    if value is None or value.shape not in ((), (1,), (channels,), (1, channels)):
        return None
    if layer.op_type == "Gemm" and graph.opset < 7:
        return None  # the bias broadcast only where an attribute said so
    scaled = attribute(layer, "beta", 1.0) * value.astype(np.float64).reshape(-1)
    return np.broadcast_to(scaled, (channels,))


def is_finite(array: np.ndarray) -> bool:
    """Whether no element is infinite or NaN; the type may be one that NumPy does not know."""
    return bool(np.isfinite(array.astype(np.float64, copy=False)).all())


def rewrite_layer(graph: Graph, layer: NodeProto, weight: np.ndarray, bias: np.ndarray) -> None:
    """Give the layer new constants; the old ones stay, because another layer may share them."""
    like = optional_input(layer, 2) or f"{layer.input[1]}_bias"
    new_weight = graph.add_constant(weight, layer.input[1])
    layer.input[:] = [layer.input[0], new_weight, graph.add_constant(bias, like)]
    for entry in [entry for entry in layer.attribute if entry.name == "beta"]:
        layer.attribute.remove(entry)
