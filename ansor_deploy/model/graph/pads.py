"""Zeros around an image become the padding of the convolution that reads it, in numbers.

    Conv(Pad(x, p), w)                 -->  Conv(x, w, pads = p)
    Conv(x, w, auto_pad = SAME_UPPER)  -->  Conv(x, w, pads = ..)

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


def pad_in_convolutions(graph: Graph) -> None:
    """Let convolutions pad with zeros themselves, and read the image without them."""
    producers = graph.producers()
    for conv in [node for node in graph.nodes if is_op(node, "Conv")]:
        if not _in_numbers(graph, conv):
            continue
        pad = producers.get(conv.input[0])
        widths = _zeros(graph, pad) if pad is not None and is_op(pad, "Pad") else None
        if pad is not None and widths is not None:
            _pad(conv, widths)
            conv.input[0] = pad.input[0]


def _in_numbers(graph: Graph, conv: NodeProto) -> bool:
    """Whether the padding of a convolution could be given in numbers."""
    how = attribute(conv, "auto_pad", "NOTSET")
    shape, weight = (graph.shapes.get(name) for name in conv.input[:2])
    if how.startswith("SAME"):
        if shape is None or weight is None:
            return False
        axes = windows(conv, shape[2:], weight[2:])
        _pad(conv, np.array([[one.before for one in axes], [one.after for one in axes]]))
    return True


def _pad(conv: NodeProto, widths: np.ndarray) -> None:
    """Add zeros before and behind each axis, of shape (2, axes), to a convolution's own."""
    given = attribute(conv, "auto_pad", "NOTSET") == "NOTSET" and attribute(conv, "pads")
    own = np.reshape(given or [0] * widths.size, widths.shape)
    for entry in [entry for entry in conv.attribute if entry.name in ("pads", "auto_pad")]:
        conv.attribute.remove(entry)
    conv.attribute.append(helper.make_attribute("pads", (own + widths).reshape(-1).tolist()))


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
