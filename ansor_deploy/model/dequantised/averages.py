"""Means of a tensor of bytes as integers: of all, of windows, or of what counts in either.

What counts is summed up and divided by its number, or means of windows by the share that counts:

    ReduceSum(Where(arange < n, x, 0)) / n    -->    ReduceSum(x - zero) * (scale / (step * n))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from onnx import NodeProto

from ..graph.graph import Graph, Shape
from ..onnx.skeleton import attribute
from ..operators.emitter import Emitter
from ..operators.means import Ends, mean_of, window_means
from .real import Real

_OF_ALL = ("GlobalAveragePool", "ReduceMean")
Makers = Mapping[str, NodeProto]


@dataclass(frozen=True)
class _Means:
    """The means that a node computes.

    data: the tensor. pool: the node that has the windows; None if there are none. count: the tensor
    that sums are divided by; "" if there is none.
    """

    data: str
    pool: NodeProto | None
    axes: Sequence[int]
    count: str


def is_average(graph: Graph, node: NodeProto, makers: Makers, reals: Mapping[str, Real]) -> bool:
    """Whether `averaged` computes this node, for a tensor of bytes."""
    return _means(graph, node, makers, reals) is not None


def averaged(
    emit: Emitter, node: NodeProto, makers: Makers, reals: Mapping[str, Real], to: Real
) -> str | None:
    """The means of a tensor of bytes as integers; None for other nodes."""
    graph = emit.graph
    found = _means(graph, node, makers, reals)
    made = graph.shapes.get(node.output[0])
    if found is None or made is None:
        return None
    real, shape = reals[found.data], graph.shapes[found.data]
    inside = Emitter(graph, found.pool or node)
    mean = _mean(inside, real.data, shape, (real.constants(emit), to.constants(emit)), found)
    emit.nodes.extend(inside.nodes)
    return mean if len(made) == len(shape) else emit.reshape(mean, *made)


def _mean(emit: Emitter, name: str, shape: Shape, ends: tuple[Ends, Ends], found: _Means) -> str:
    """The means of bytes; all axes are kept."""
    if found.pool is None:
        count = found.count or emit.constant(prod(shape[axis] for axis in found.axes))
        return mean_of(emit, name, *ends, found.axes, count)
    if not found.count:
        return window_means(emit, name, shape, *ends)
    taps = emit.constant(prod(emit.attribute("kernel_shape")))
    counts = emit("Round", emit("Mul", found.count, taps))  # the count is a share of the taps
    return window_means(emit, name, shape, *ends, counts)


def _means(
    graph: Graph, node: NodeProto, makers: Makers, reals: Mapping[str, Real]
) -> _Means | None:
    found = _divided(graph, node, makers) if node.op_type == "Div" else _plain(graph, node)
    real = None if found is None else reals.get(found.data)
    known = real is not None and real.is_whole and real.is_bytes
    return found if found and known and graph.shapes.get(found.data) else None


def _plain(graph: Graph, node: NodeProto) -> _Means | None:
    """The means of a node that averages by itself."""
    if node.op_type == "AveragePool":
        # If padding counts, no window may end beyond it.
        padded = attribute(node, "ceil_mode", 0) and attribute(node, "count_include_pad", 0)
        return None if padded else _Means(node.input[0], node, (), "")
    axes = _axes(graph, node) if node.op_type in _OF_ALL else None
    return None if axes is None else _Means(node.input[0], None, axes, "")


def _divided(graph: Graph, node: NodeProto, makers: Makers) -> _Means | None:
    """Sums divided by a number that a run decides, or means divided by the share that counts."""
    total, share = (makers.get(name) for name in node.input)
    if total is None or share is None:
        return None
    if total.op_type == share.op_type == "AveragePool":
        found = _plain(graph, total) if attribute(total, "count_include_pad", 0) else None
        return found and replace(found, count=node.input[1])
    axes, name = set[int](), node.input[0]
    while (adds := makers.get(name)) is not None and adds.op_type == "ReduceSum":
        axes |= set(_axes(graph, adds) or ())
        name = adds.input[0]
    one = prod(graph.shapes.get(node.input[1], (0,))) == 1
    return _Means(name, None, sorted(axes), node.input[1]) if axes and one else None


def _axes(graph: Graph, node: NodeProto) -> list[int] | None:
    """The axes over which a node reduces; None if they are not known."""
    rank = len(graph.shapes.get(node.input[0], ()))
    if node.op_type == "GlobalAveragePool":
        return list(range(2, rank))
    named = attribute(node, "axes")
    if named is None and len(node.input) > 1:
        given = graph.value(node.input[1])
        named = None if given is None else given.tolist()
    return sorted(axis % rank for axis in named) if named and rank else None
