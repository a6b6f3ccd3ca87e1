"""Zeros around an image become the padding of the convolution that reads it, in numbers.

    Conv(Pad(x, p), w)                 -->  Conv(x, w, pads = p)
    Conv(x, w, auto_pad = SAME_UPPER)  -->  Conv(x, w, pads = ..)      MaxPool likewise

Exporters write TensorFlow's and Keras's paddings so. A kernel for them would copy the image, where
the convolution only skips what lies outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, helper

from ..onnx.skeleton import attribute
from .graph import Graph, is_op, optional_input
from .sliding import windows


def pad_in_windows(graph: Graph) -> None:
    """Give paddings of convolutions and maxima in numbers, and zeros around an image as such."""
    producers = graph.producers()
    for node in [node for node in graph.nodes if is_op(node, "Conv", "MaxPool")]:
        known = _in_numbers(graph, node)
        pad = producers.get(node.input[0]) if known and is_op(node, "Conv") else None
        widths = _zeros(graph, pad) if pad is not None and is_op(pad, "Pad") else None
        if pad is not None and widths is not None:
            _pad(node, widths)
            node.input[0] = pad.input[0]


def _in_numbers(graph: Graph, node: NodeProto) -> bool:
    """Whether the padding of a node could be given in numbers."""
    if not attribute(node, "auto_pad", "NOTSET").startswith("SAME"):
        return True
    shapes = [graph.shapes.get(name) for name in node.input[:2]]
    if None in shapes:
        return False
    kernel = attribute(node, "kernel_shape") or graph.shapes[node.input[1]][2:]
    axes = windows(node, graph.shapes[node.input[0]][2:], kernel)
    _pad(node, np.array([[one.before for one in axes], [one.after for one in axes]]))
    return True


def _pad(node: NodeProto, widths: np.ndarray) -> None:
    """Add padding before and behind each axis, of shape (2, axes), to what a node has."""
    given = attribute(node, "auto_pad", "NOTSET") == "NOTSET" and attribute(node, "pads")
    own = np.reshape(given or [0] * widths.size, widths.shape)
    # A padding by name leaves no rest of which half a window could be made.
    for entry in [one for one in node.attribute if one.name in ("pads", "auto_pad", "ceil_mode")]:
        node.attribute.remove(entry)
    node.attribute.append(helper.make_attribute("pads", (own + widths).reshape(-1).tolist()))


def _zeros(graph: Graph, pad: NodeProto) -> np.ndarray | None:
    """How many zeros are before and behind each axis of an image, of shape (2, axes).

    None if the node pads with something else, pads other axes, cuts, or has no constant widths.
    """
    shape = graph.shapes.get(pad.input[0])
    if shape is None or attribute(pad, "mode", "constant") != "constant":
        return None
    widths = _given(graph, pad, 1, attribute(pad, "pads"))
    value = _given(graph, pad, 2, attribute(pad, "value", 0.0))
    axes = _given(graph, pad, 3, range(len(shape)))
    if widths is None or axes is None or value is None or value.any():
        return None
    both = np.zeros((2, len(shape)), np.int64)
    both[:, axes] = widths.reshape(2, -1)
    return None if both[:, :2].any() or (both < 0).any() else both[:, 2:]


def _given(graph: Graph, pad: NodeProto, at: int, otherwise: Any) -> np.ndarray | None:
    """The value of an optional input, or what holds where it is left out; None if not constant."""
    if name := optional_input(pad, at):
        return graph.value(name)
    return None if otherwise is None else np.asarray(otherwise)
