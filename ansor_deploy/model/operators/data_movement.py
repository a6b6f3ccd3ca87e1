"""Operators that move data, where TVM's converters would prevent fusion."""

from dataclasses import replace
from typing import Any

import numpy as np
from onnx import NodeProto

from ..._lazy_tvm import relax
from ..graph.graph import Graph
from .converting import Call
from .operator import Operator


def unsqueeze(graph: Graph, node: NodeProto) -> list[NodeProto] | None:
    """Unsqueeze with a list of axes: ONNX Runtime also takes a number."""
    axes = graph.value(node.input[1]) if len(node.input) > 1 else None
    if axes is None or axes.ndim == 1:
        return None
    listed = graph.add_constant(np.atleast_1d(axes), node.input[1])
    changed = NodeProto()
    changed.CopyFrom(node)
    changed.input[1] = listed
    return [changed]


# ONNX's names of what fills a border, and TVM's.
_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}
# Types whose constants float64 holds: the type in which TVM keeps that of an operator.
_EXACT = ("float", "int8", "uint8", "int16", "uint16", "int32")


def pad(call: Call) -> Any:
    """Pad as an operator: TVM's converter lowers it at once, which stops layout conversion."""
    mode = call.attribute("mode", "constant")
    constant = mode == "constant"
    if constant and call.opset >= 11 and call.input(2) is not None and call.value(2) is None:
        return _pad_with_computed(call)
    if call.opset < 11 or mode not in _MODES or not call.dtype(0).startswith(_EXACT):
        return call.by_tvm()
    before, after, value = call.theirs._parse_pads_and_axes(call.inputs, call.params)  # noqa: SLF001
    if min(before + after) < 0:
        return call.by_tvm()
    widths = [width for pair in zip(before, after, strict=True) for width in pair]
    return relax.op.nn.pad(call.inputs[0], widths, _MODES[mode], float(value))


def _pad_with_computed(call: Call) -> Any:
    """Pad with a value that is known only in a run."""
    data, widths, value, *axes = call.inputs
    given = [data, widths, None, *axes]
    before, after, _ = call.theirs._parse_pads_and_axes(given, call.params)  # noqa: SLF001
    pairs = list(zip(before, after, strict=True))
    padded = call.emit(relax.op.nn.pad(data, [n for pair in pairs for n in pair], "constant", 0.0))
    outside = np.pad(np.zeros(call.shape(0), bool), pairs, constant_values=True)
    number = call.emit(relax.op.reshape(value, ()))
    return relax.op.where(relax.const(outside, "bool"), number, padded)


def slice_(call: Call) -> Any:
    """A part of a tensor; before opset 10 the bounds are attributes, which TVM does not know."""
    if call.opset >= 10:
        return call.by_tvm()
    bounds = [call.attribute(name) for name in ("starts", "ends", "axes")]
    given = [None if each is None else relax.const(np.array(each), "int64") for each in bounds]
    return replace(call, inputs=[call.inputs[0], *given, None]).by_tvm()


OPERATORS = (
    Operator("Unsqueeze", rewrite=unsqueeze),
    Operator("Pad", constant=(1, 3), convert=pad),
    Operator("Slice", convert=slice_),
)
