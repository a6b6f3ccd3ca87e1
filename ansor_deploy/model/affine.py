"""Per-channel scales and offsets disappear into the weights of the layer before them.

BatchNormalization, and Mul, Add, Sub, Div by per-channel constants are all y = scale * x +
offset; a row of them is composed in float64 and written once, so that nothing is rounded twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, helper

from .graph import FLOATS, Graph, Shape, attribute, is_op, optional_input

_BINARY = ("Mul", "Add", "Sub", "Div")


@dataclass(frozen=True)
class Affine:
    """y = scale * x + offset along axis 1; both float64, of shape (channels,) or ()."""

    scale: np.ndarray
    offset: np.ndarray

    def then(self, after: Affine) -> Affine:
        """This one first, `after` on its result."""
        with np.errstate(all="ignore"):
            return Affine(after.scale * self.scale, after.scale * self.offset + after.offset)


@dataclass(frozen=True)
class Row:
    """Affine nodes that feed one another and nothing else. data: what the first one reads."""

    data: str
    nodes: tuple[NodeProto, ...]
    affine: Affine

    @property
    def result(self) -> str:
        """Name of the tensor that the last one makes."""
        return str(self.nodes[-1].output[0])


def fold_affine(graph: Graph) -> None:
    """Conv -> BatchNormalization -> Mul -> Add --> Conv; with no layer before: --> Mul -> Add.

    A layer (Conv, ConvTranspose, Gemm) takes the row in when nothing else reads its result.
    """
    graph.infer()
    consumers, producers = graph.consumers(), graph.producers()
    for row in _rows(graph, consumers):
        layer = producers.get(row.data)
        sole = len(consumers[row.data]) == 1 and row.data not in graph.output_names
        if layer is not None and sole and _absorb(graph, layer, row.affine):
            layer.output[0] = row.result
            _replace(graph, row, [])
        else:
            _rewrite(graph, row)


def _rows(graph: Graph, consumers: dict[str, list[NodeProto]]) -> list[Row]:
    """The longest rows, in the order of the graph."""
    rows: list[Row] = []
    taken: set[int] = set()
    for node in graph.nodes:
        found = None if id(node) in taken else _link(graph, node)
        if found is not None:
            row = _extend(graph, Row(found[0], (node,), found[1]), consumers)
            taken.update(id(link) for link in row.nodes)
            rows.append(row)
    return rows


def _extend(graph: Graph, row: Row, consumers: dict[str, list[NodeProto]]) -> Row:
    while row.result not in graph.output_names and len(consumers[row.result]) == 1:
        node = consumers[row.result][0]
        found = _link(graph, node)
        if found is None or found[0] != row.result:
            break
        row = Row(row.data, (*row.nodes, node), row.affine.then(found[1]))
    return row


def _link(graph: Graph, node: NodeProto) -> tuple[str, Affine] | None:
    """What an affine node reads and does; None for any other node."""
    if is_op(node, "BatchNormalization"):
        affine = _of_batch_norm(graph, node)
        return None if affine is None else (node.input[0], affine)
    if is_op(node, *_BINARY) and graph.opset >= 7:  # before that, broadcasting had attributes
        return _of_binary(graph, node)
    return None


def _of_batch_norm(graph: Graph, node: NodeProto) -> Affine | None:
    values = [graph.value(name) for name in node.input[1:]]
    training = attribute(node, "training_mode", 0) or any(node.output[1:])
    if training or any(v is None or v.ndim != 1 for v in values) or graph.opset < 7:
        return None
    gamma, beta, mean, variance = (np.asarray(v, np.float64) for v in values)
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
        return Affine(scale, beta - mean * scale)


def _of_binary(graph: Graph, node: NodeProto) -> tuple[str, Affine] | None:
    left, right = node.input
    data, constant = (right, left) if left in graph.constants else (left, right)
    value = _per_channel(graph, data, constant)
    if value is None or data in graph.constants:
        return None
    with np.errstate(all="ignore"):
        affine = _affine(node.op_type, value, reverse=data == right)
    return None if affine is None else (data, affine)


def _affine(op: str, value: np.ndarray, *, reverse: bool) -> Affine | None:
    """The meaning of `x op value`, or reversed of `value op x`."""
    one, zero = np.float64(1), np.float64(0)
    if reverse and op in ("Sub", "Div"):
        return Affine(-one, value) if op == "Sub" else None
    scale = {"Mul": value, "Div": one / value}.get(op, one)
    return Affine(scale, {"Add": value, "Sub": -value}.get(op, zero))


def _per_channel(graph: Graph, data: str, constant: str) -> np.ndarray | None:
    """A constant as float64 of shape () or (channels,), if that is how it meets the data."""
    shape, value = graph.shapes.get(data), graph.value(constant)
    if value is None or shape is None or graph.dtypes.get(data) not in FLOATS:
        return None
    if value.ndim > len(shape):
        return None
    if value.size == 1:
        return np.asarray(value, np.float64).reshape(())
    aligned = (1,) * (len(shape) - value.ndim) + value.shape
    if len(shape) < 2 or aligned != _channel_shape(shape):
        return None
    return np.asarray(value, np.float64).reshape(-1)


def _channel_shape(shape: Shape) -> Shape:
    return tuple(size if axis == 1 else 1 for axis, size in enumerate(shape))


def _rewrite(graph: Graph, row: Row) -> None:
    """The row as Mul and Add, where it holds a BatchNormalization or gets shorter by it."""
    shape = graph.shapes.get(row.data)
    operands = None if shape is None else _operands(graph, row, shape)
    if operands is None:
        return
    normalises = any(is_op(node, "BatchNormalization") for node in row.nodes)
    if normalises or len(operands) < len(row.nodes):
        _replace(graph, row, _mul_add(graph, row, operands))


def _operands(graph: Graph, row: Row, shape: Shape) -> dict[str, np.ndarray] | None:
    """The constants of the Mul and the Add, without those that change nothing."""
    dtype = helper.tensor_dtype_to_np_dtype(graph.dtypes[row.data])
    operands = {}
    for op, value, neutral in (("Mul", row.affine.scale, 1), ("Add", row.affine.offset, 0)):
        with np.errstate(all="ignore"):
            constant = np.asarray(value).astype(dtype)
        if not _is_finite(constant):
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
    """New nodes where the row's last one was; the others go."""
    for node in row.nodes[:-1]:
        graph.remove(node)
    graph.replace(row.nodes[-1], new)


def _absorb(graph: Graph, layer: NodeProto, affine: Affine) -> bool:
    """Make the layer compute scale * y + offset instead of y; whether it could.

    It cannot when its weights are not constant, or when the new ones do not fit their type.
    """
    if not is_op(layer, "Conv", "ConvTranspose", "Gemm"):
        return False
    weight, bias = graph.value(layer.input[1]), _bias(graph, layer)
    if weight is None or bias is None:
        return False
    with np.errstate(all="ignore"):
        new_weight = _scaled(layer, weight, affine.scale).astype(weight.dtype)
        new_bias = np.asarray(bias * affine.scale + affine.offset).astype(weight.dtype)
    if not (_is_finite(new_weight) and _is_finite(new_bias)):
        return False
    _rewrite_layer(graph, layer, new_weight, new_bias)
    return True


def _output_channels(graph: Graph, layer: NodeProto) -> int:
    """How many output channels the layer's weight makes."""
    dims = graph.constants[layer.input[1]].dims
    if layer.op_type == "ConvTranspose":
        return int(dims[1]) * int(attribute(layer, "group", 1))
    if layer.op_type == "Gemm":
        return int(dims[0 if attribute(layer, "transB", 0) else 1])
    return int(dims[0])


def _bias(graph: Graph, layer: NodeProto) -> np.ndarray | None:
    """The bias as float64 of shape (channels,), zeros if it has none; None if it is not so."""
    channels = _output_channels(graph, layer) if layer.input[1] in graph.constants else 0
    name = optional_input(layer, 2)
    value = graph.value(name) if name else np.zeros(channels)
    if value is None or value.shape not in ((), (1,), (channels,), (1, channels)):
        return None
    if layer.op_type == "Gemm":
        if graph.opset < 7:  # the bias broadcast only where an attribute said so
            return None
        value = attribute(layer, "beta", 1.0) * np.asarray(value, np.float64)
    return np.broadcast_to(np.asarray(value, np.float64).reshape(-1), (channels,))


def _scaled(layer: NodeProto, weight: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The weight times the scale, along the axis of the output channels."""
    wide = weight.astype(np.float64)
    if scale.ndim == 0:
        return wide * scale
    if layer.op_type == "Gemm":
        return wide * (scale[:, None] if attribute(layer, "transB", 0) else scale)
    if layer.op_type == "Conv":  # (out, in / group, *kernel)
        return wide * scale.reshape(-1, *[1] * (weight.ndim - 1))
    # ConvTranspose: (in, out / group, *kernel), the inputs of one group after another.
    groups = attribute(layer, "group", 1)
    split = wide.reshape(groups, -1, *weight.shape[1:])
    return (split * scale.reshape(groups, 1, -1, *[1] * (weight.ndim - 2))).reshape(weight.shape)


def _is_finite(array: np.ndarray) -> bool:
    """Whether no element is infinite or NaN, in a type that NumPy need not know."""
    return bool(np.isfinite(array.astype(np.float64, copy=False)).all())


def _rewrite_layer(graph: Graph, layer: NodeProto, weight: np.ndarray, bias: np.ndarray) -> None:
    """New constants, because another layer may share the old ones."""
    like = optional_input(layer, 2) or f"{layer.input[1]}_bias"
    new_weight = graph.add_constant(weight, layer.input[1])
    layer.input[:] = [layer.input[0], new_weight, graph.add_constant(bias, like)]
    kept = [entry for entry in layer.attribute if entry.name != "beta"]
    del layer.attribute[:]
    layer.attribute.extend(kept)
