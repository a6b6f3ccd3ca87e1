"""Convolutions of one tensor that are added up become one convolution.

    Conv(x, v) + Conv(x, w) + (scale * x + offset)  -->  Conv(x, v + w + scale on the diagonal)

Networks are trained with such branches and run without them (RepVGG, Ding et al., 2021), but files
may still have them. The window of one convolution has to cover the taps of the other, so that no
convolution does more work. Weights are added in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto

from ..onnx.skeleton import attribute
from .affine import bias_of, fold_affine, is_finite, link, rewrite_layer
from .cleanup import drop_identity
from .graph import Graph, is_op


@dataclass(frozen=True)
class _Term:
    """One summand: a convolution, or a scale and an offset of each channel, which is one too.

    nodes: the nodes that compute it, and nothing else. weight: of shape (out, in / groups, *taps).
    before: how far the image is padded before its first element, along each axis.
    """

    data: str
    nodes: tuple[NodeProto, ...]
    weight: np.ndarray
    bias: np.ndarray
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def negated(self) -> _Term:
        """The term that has to be added where this one is subtracted."""
        return replace(self, weight=-self.weight, bias=-self.bias)

    def with_added(self, other: _Term, channels: int) -> np.ndarray | None:
        """The weights of both terms; None where this window does not cover the other's taps.

        channels: the number of channels of the data.
        """
        taps = [self._places(other, axis) for axis in range(len(self.strides))]
        if self.strides != other.strides or None in taps:
            return None
        weight, at = self.weight.astype(np.float64), np.ix_(*map(list, filter(None, taps)))
        outputs, inputs = weight.shape[:2]
        if other.weight.shape[:2] == (outputs, inputs):
            _taps_first(weight)[at] += _taps_first(other.weight)
        elif other.weight.shape[:2] == (channels, 1) and outputs == channels:
            for channel, own in enumerate(other.weight):
                weight[channel, channel % inputs][at] += own[0]
        else:
            return None
        return weight

    def _places(self, other: _Term, axis: int) -> range | None:
        """The taps along an axis that read what the other's taps read; None if some are missing."""
        step, count = self.dilations[axis], self.weight.shape[2 + axis]
        others = other.weight.shape[2 + axis]
        wide = other.dilations[axis] if others > 1 else step
        first = self.before[axis] - other.before[axis]
        last = first + (others - 1) * wide
        if first % step or last % step or wide % step or not 0 <= first <= last < count * step:
            return None
        return range(first // step, last // step + 1, wide // step)


def _taps_first(weight: np.ndarray) -> np.ndarray:
    return np.moveaxis(weight, (0, 1), (-2, -1))


@np.errstate(all="ignore")
def add_up_convolutions(graph: Graph) -> None:
    """Replace convolutions of one tensor that are added up by one convolution."""
    drop_identity(graph)  # adding an offset of zero has become one
    while _added_up(graph):
        fold_affine(graph)
        drop_identity(graph)


def _added_up(graph: Graph) -> bool:
    """Whether two convolutions became one."""
    graph.infer()
    consumers, producers = graph.consumers(), graph.producers()
    alone = {name for name, readers in consumers.items() if len(readers) == 1}
    inside = {name: made for name, made in producers.items() if name in alone}
    for name in graph.output_names:
        inside.pop(name, None)
    found = False
    for node in [one for one in graph.nodes if is_op(one, "Add", "Sub")]:
        if (merged := _merged(graph, node, inside)) is not None:
            found = True
            if node.output[0] in inside:
                inside[node.output[0]] = merged
    return found


def _merged(graph: Graph, total: NodeProto, inside: Mapping[str, NodeProto]) -> NodeProto | None:
    """The convolution that replaces an Add or Sub; None if the node stays."""
    shapes = [graph.shapes.get(name) for name in (*total.input, total.output[0])]
    if None in shapes or any(shape != shapes[0] for shape in shapes):
        return None
    terms = [_term(graph, name, inside) for name in dict.fromkeys(total.input)]
    known = [one for one in terms if one is not None]
    if len(known) < 2 or known[0].data != known[1].data:
        return None
    first, second = known
    second = second.negated if is_op(total, "Sub") else second
    for kept, other in ((first, second), (second, first)):
        if is_op(kept.nodes[0], "Conv") and _took_in(graph, kept, other):
            (conv,) = kept.nodes
            for gone in (*other.nodes, total):
                graph.replace(gone, [])
            conv.output[0] = total.output[0]
            return conv
    return None


def _took_in(graph: Graph, kept: _Term, other: _Term) -> bool:
    """Whether a convolution could take in another's weights."""
    shape = graph.shapes.get(kept.data)
    weight = kept.with_added(other, shape[1]) if shape else None
    if weight is None:
        return False
    (conv,) = kept.nodes
    kind = graph.value(conv.input[1]).dtype  # type: ignore[union-attr]
    new = weight.astype(kind), (kept.bias + other.bias).astype(kind)
    if not all(map(is_finite, new)):
        return False
    rewrite_layer(graph, conv, *new)
    return True


def _term(graph: Graph, name: str, inside: Mapping[str, NodeProto]) -> _Term | None:
    """The term that makes a tensor if nothing else reads the tensor; else None."""
    node = inside.get(name)
    if node is None:
        return None
    return _convolution(graph, node) if is_op(node, "Conv") else _scaled(graph, node, inside)


def _convolution(graph: Graph, node: NodeProto) -> _Term | None:
    weight = graph.value(node.input[1])
    if weight is None or attribute(node, "auto_pad", "NOTSET") != "NOTSET":
        return None
    bias, axes = bias_of(graph, node, len(weight)), weight.ndim - 2
    if bias is None:
        return None
    ones, none = [1] * axes, [0] * axes
    steps: Sequence[Sequence[int]] = (
        attribute(node, "strides", ones),
        attribute(node, "dilations", ones),
        attribute(node, "pads", none)[:axes],
    )
    return _Term(node.input[0], (node,), weight, bias, *map(tuple, steps))


def _scaled(graph: Graph, node: NodeProto, inside: Mapping[str, NodeProto]) -> _Term | None:
    """Scales and offsets, such as a batch norm beside convolutions, as a convolution of one tap."""
    row = link(graph, node)
    while row is not None and (before := inside.get(row.data)) is not None:
        first = link(graph, before)
        if first is None:
            break
        row = first.then(row)
    shape = None if row is None else graph.shapes.get(row.data)
    if row is None or shape is None or len(shape) < 3:
        return None
    axes = len(shape) - 2
    scale, offset = (np.broadcast_to(one, shape[1:2]) for one in (row.scale, row.offset))
    ones, none = (1,) * axes, (0,) * axes
    return _Term(row.data, row.nodes, scale.reshape(-1, 1, *ones), offset, ones, ones, none)
