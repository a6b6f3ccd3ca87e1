"""A layer's weights and bias take in a scale and an offset per output channel."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from .graph import Graph, attribute, is_op, optional_input


def absorb(graph: Graph, layer: NodeProto, scale: np.ndarray, offset: np.ndarray) -> bool:
    """Make the layer compute scale * y + offset instead of y; whether it could.

    scale, offset: float64 of shape (channels,) or (). It cannot when its weights are not
    constant, or when the new ones do not fit their type.
    """
    if not is_op(layer, "Conv", "ConvTranspose", "Gemm"):
        return False
    weight, bias = graph.value(layer.input[1]), _bias(graph, layer)
    if weight is None or bias is None:
        return False
    with np.errstate(all="ignore"):
        new_weight = _scaled(layer, weight, scale).astype(weight.dtype)
        new_bias = np.asarray(bias * scale + offset).astype(weight.dtype)
    if not (is_finite(new_weight) and is_finite(new_bias)):
        return False
    _write(graph, layer, new_weight, new_bias)
    return True


def _channels(graph: Graph, layer: NodeProto) -> int:
    """How many output channels the layer's weight makes."""
    dims = graph.constants[layer.input[1]].dims
    if layer.op_type == "ConvTranspose":
        return int(dims[1]) * int(attribute(layer, "group", 1))
    if layer.op_type == "Gemm":
        return int(dims[0 if attribute(layer, "transB", 0) else 1])
    return int(dims[0])


def _bias(graph: Graph, layer: NodeProto) -> np.ndarray | None:
    """The bias as float64 of shape (channels,), zeros if it has none; None if it is not so."""
    channels = _channels(graph, layer) if layer.input[1] in graph.constants else 0
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


def is_finite(array: np.ndarray) -> bool:
    """Whether no element is infinite or NaN, in a type that NumPy need not know."""
    return bool(np.isfinite(array.astype(np.float64, copy=False)).all())


def _write(graph: Graph, layer: NodeProto, weight: np.ndarray, bias: np.ndarray) -> None:
    """New constants, because another layer may share the old ones."""
    like = optional_input(layer, 2) or f"{layer.input[1]}_bias"
    new_weight = graph.add_constant(weight, layer.input[1])
    layer.input[:] = [layer.input[0], new_weight, graph.add_constant(bias, like)]
    kept = [entry for entry in layer.attribute if entry.name != "beta"]
    del layer.attribute[:]
    layer.attribute.extend(kept)
