"""Functions of two tensors of bytes, and means of one, as ONNX Runtime's operators on bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from onnx import NodeProto, helper

from ..graph.graph import Graph, Shape
from ..onnx.skeleton import attribute
from ..operators.emitter import Emitter
from ..operators.means import Ends, mean_of, window_means
from ..operators.quantization_contrib import q_linear_add, q_linear_mul
from .real import Real

_MEANS = ("AveragePool", "GlobalAveragePool", "ReduceMean")
_PAIRS: dict[str, Callable[[Emitter], str]] = {"Add": q_linear_add, "Mul": q_linear_mul}


def paired(emit: Emitter, node: NodeProto, reals: Mapping[str, Real], to: Real) -> str | None:
    """The sum or the product of two tensors of bytes as integers; None of other nodes."""
    compute = _PAIRS.get(node.op_type)
    given = [reals.get(name) for name in node.input]
    if compute is None or len(given) != 2 or node.domain not in ("", "ai.onnx"):
        return None
    names: list[str] = []
    for one in given:
        if one is None or not (one.is_whole and one.is_bytes):
            return None
        names += [one.data, *one.constants(emit)]
    names += to.constants(emit)
    made = helper.make_node(f"QLinear{node.op_type}", names, [node.output[0]])
    inside = Emitter(emit.graph, made)
    result = compute(inside)
    emit.nodes.extend(inside.nodes)
    return result


def is_of_bytes(node: NodeProto, reals: Mapping[str, Real]) -> bool:
    """Whether a node is one that `paired` or `averaged` compute, of tensors of bytes."""
    given = node.input if node.op_type in _PAIRS else node.input[:1]
    known = [reals.get(name) for name in given]
    return (node.op_type in _PAIRS or node.op_type in _MEANS) and all(
        one is not None and one.is_whole and one.is_bytes for one in known
    )


def averaged(emit: Emitter, node: NodeProto, reals: Mapping[str, Real], to: Real) -> str | None:
    """The means of a tensor of bytes as integers, of all or of windows; None of other nodes."""
    real = reals.get(node.input[0]) if node.input else None
    if real is None or not (real.is_whole and real.is_bytes):
        return None
    shapes = emit.graph.shapes
    shape, made = shapes.get(node.input[0]), shapes.get(node.output[0])
    if not shape or made is None:
        return None
    inside, ends = Emitter(emit.graph, node), (real.constants(emit), to.constants(emit))
    mean = _mean(inside, real.data, shape, *ends)
    emit.nodes.extend(inside.nodes)
    return mean if mean is None or len(made) == len(shape) else emit.reshape(mean, *made)


def _mean(emit: Emitter, name: str, shape: Shape, given: Ends, made: Ends) -> str | None:
    """Of bytes, as the emitter's node has it; with all axes."""
    padded = emit.attribute("ceil_mode", 0) and emit.attribute("count_include_pad", 0)
    if emit.node.op_type == "AveragePool":  # of which no window may end beyond padding that counts
        return None if padded else window_means(emit, name, shape, given, made)
    axes = _axes(emit.graph, emit.node, shape)
    if axes is None:
        return None
    return mean_of(emit, name, given, made, axes, prod(shape[axis] for axis in axes))


def _axes(graph: Graph, node: NodeProto, shape: Shape) -> list[int] | None:
    """The axes over which a node takes the mean; None where it does something else."""
    if node.op_type == "GlobalAveragePool":
        return list(range(2, len(shape)))
    if node.op_type != "ReduceMean":
        return None
    named = attribute(node, "axes")
    if named is None and len(node.input) > 1:
        given = graph.value(node.input[1])
        named = None if given is None else given.tolist()
    return sorted(axis % len(shape) for axis in named) if named else None
