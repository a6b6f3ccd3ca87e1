"""Operators of com.microsoft that ONNX has adopted since, or that consist of a few of its own."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .emitter import Emitter
from .operator import contrib

BOOL = TensorProto.BOOL
_MODES = {"bilinear": "linear", "bicubic": "cubic"}  # the names from opset 20 on


def gather_nd(emit: Emitter) -> str:
    """A slice for each row of indices."""
    return emit("GatherND", emit.input(0), emit.input(1))


def grid_sample(emit: Emitter) -> str:
    """An image at places that a grid names."""
    mode = emit.attribute("mode", "bilinear")
    kept = {name: emit.attribute(name) for name in ("align_corners", "padding_mode")}
    kept["mode"] = _MODES.get(mode, mode) if emit.graph.opset >= 20 else mode
    return emit("GridSample", emit.input(0), emit.input(1), **kept)


def pad(emit: Emitter) -> str:
    """A tensor with a border."""
    value = [emit.reshape(emit.input(2))] if emit.input(2) else []
    mode = emit.attribute("mode", "constant")
    return emit("Pad", emit.input(0), emit.reshape(emit.input(1), -1), *value, mode=mode)


def expand_dims(emit: Emitter) -> str:
    """A tensor with one more axis."""
    axis = emit.graph.value(emit.input(1))
    if axis is None:
        raise emit.refuse("its axis must be constant")
    return emit.unsqueeze(emit.input(0), int(axis.item()))


def trilu(emit: Emitter) -> str:
    """The upper or lower triangle; zeros elsewhere."""
    offset = emit.graph.value(emit.input(1)) if emit.input(1) else np.zeros(1)
    if offset is None:
        raise emit.refuse("its k must be constant")
    kind, (rows, columns) = emit.dtype(emit.input(0)), emit.shape(emit.input(0))[-2:]
    emit.room_for(rows, columns)
    ones = np.ones((rows, columns), np.bool_)
    keep = np.triu if emit.attribute("upper", 1) else np.tril
    kept = emit.constant(keep(ones, int(offset.item())), BOOL)
    return emit("Where", kept, emit.input(0), emit.constant(0, kind))


def distances(emit: Emitter) -> str:
    """The distance of each row to each row of another matrix."""
    metric = emit.attribute("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise emit.refuse(f"the metric {metric} is not supported")
    apart = emit("Sub", emit.unsqueeze(emit.input(0), 1), emit.unsqueeze(emit.input(1), 0))
    square = emit.reduce("ReduceSum", emit("Mul", apart, apart), 2)
    shape = [emit.shape(emit.input(at))[0] for at in range(2)]
    result = emit.reshape(square, *shape)
    return emit("Sqrt", result) if metric == "euclidean" else result


OPERATORS = (
    contrib("CDist", types=("float32", "float64"), expand=distances),
    contrib("ExpandDims", expand=expand_dims),
    contrib("GatherND", expand=gather_nd),
    contrib("GridSample", expand=grid_sample),
    contrib("Pad", expand=pad),
    contrib("Trilu", expand=trilu),
)
