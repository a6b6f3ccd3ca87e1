"""Write operators on integers as conversions around the float operators that they stand for.

    QLinearConv(x, w, b)  -->  DequantizeLinear(x), (w), (b) ; Conv ; QuantizeLinear

So everything about integers is in one place (`integers.py`), whoever has quantised a network, and
in whichever form. An operator stays as it is if its scales are found in a run.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from onnx import ModelProto, NodeProto

from ..graph.cleanup import drop_identity
from ..graph.fold import sort_and_fold
from ..graph.graph import BYTES, Graph
from ..onnx.skeleton import domain_of
from ..operators import quantization_contrib as contrib
from ..operators.emitter import Emitter, expanded
from ..operators.operator import Expand
from ..operators.quantization import in_its_layout

_WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
# The first opset that has conversions.
_CONVERSIONS = 10
# The first opset that has conversions along an axis.
_AXES = 13
_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")


def as_conversions(graph: Graph) -> None:
    """Write operators on integers as conversions around float operators.

    graph: its nodes in topological order, its constants folded.
    """
    nodes, changed = graph.nodes, False
    done: list[NodeProto] = []
    for at, node in enumerate(nodes):
        made = conversions(graph, node)
        done += [node] if made is None else made
        if made is not None:
            changed = True
            graph.nodes = [*done, *nodes[at + 1 :]]  # the next node may look at the graph
    if changed:
        drop_identity(graph)
        graph.infer()


def in_conversions(proto: ModelProto) -> ModelProto:
    """A model with its operators on integers written as conversions; itself if it has none."""
    if not any(_OPERATORS.get(node.op_type, _standard) != _standard for node in proto.graph.node):
        return proto
    graph = Graph.of(proto)
    sort_and_fold(graph)
    graph.infer()
    as_conversions(graph)
    return graph.to_proto()


def conversions(graph: Graph, node: NodeProto) -> list[NodeProto] | None:
    """The nodes that an operator on integers is written as; None if it stays, or for others."""
    write = _OPERATORS.get(node.op_type)
    return None if write is None else expanded(graph, node, write)


def _is_known(emit: Emitter, *scales: int) -> bool:
    """Whether scales, and the zero points behind them, are constants that bytes can have."""
    for at in scales:
        scale, zero = emit.graph.value(emit.input(at)), emit.input(at + 1)
        if scale is None or scale.dtype != np.float32 or not _are_scales(scale):
            return False
        if zero and (zero not in emit.graph.constants or emit.dtype(zero) not in BYTES):
            return False
    return True


def _are_scales(given: np.ndarray) -> bool:
    return bool((np.isfinite(given) & (given > 0)).all())


def _pair(op: str) -> Callable[[Emitter], str | None]:
    def write(emit: Emitter) -> str | None:
        if not _is_known(emit, 1, 4, 6):
            return None
        made = emit(op, contrib.numbers(emit, 0), contrib.numbers(emit, 3))
        return contrib.integers(emit, made, 6)

    return write


def _mean(emit: Emitter) -> str | None:
    if not _is_known(emit, 1, 3):
        return None
    axes = contrib.positions(emit)
    return contrib.integers(emit, emit.reduce("ReduceMean", contrib.numbers(emit, 0), *axes), 3)


def _means(emit: Emitter) -> str | None:
    """The mean of each window; None if padding counts and windows may end beyond it."""
    how = {name: emit.attribute(name) for name in _POOL}
    if not _is_known(emit, 1, 3) or (how["ceil_mode"] and how["count_include_pad"]):
        return None

    def pool(name: str) -> str:
        x = emit("DequantizeLinear", name, emit.input(1), emit.input(2))
        return contrib.integers(emit, emit("AveragePool", x, **how), 3)

    return in_its_layout(emit, pool)


def _convolution(emit: Emitter) -> str | None:
    known = _is_known(emit, 1, 4, 6) and emit.input(3) in emit.graph.constants
    bias = _bias(emit, 8) if known else None
    if bias is None:
        return None
    window = {name: emit.attribute(name) for name in _WINDOW}
    weight = _weight(emit, 0)

    def conv(name: str) -> str:
        x = emit("DequantizeLinear", name, emit.input(1), emit.input(2))
        return contrib.integers(emit, emit("Conv", x, weight, *bias, **window), 6)

    return in_its_layout(emit, conv)


def _product(emit: Emitter) -> str | None:
    """A matrix product; the right matrix has one scale, or one for each column."""
    if not _is_known(emit, 1, 4, 6):
        return None
    left, right = (emit.shape(emit.input(at)) for at in (1, 4))
    by_column = len(right) == 1 and len(emit.shape(emit.input(3))) == 2
    if prod(left) > 1 or not (prod(right) == 1 or by_column):
        return None
    return contrib.integers(emit, emit("MatMul", contrib.numbers(emit, 0), _weight(emit, 1)), 6)


def _gemm(emit: Emitter) -> str | None:
    known = bool(emit.input(7)) and emit.attribute("alpha", 1.0) == 1 and _is_known(emit, 1, 4, 7)
    bias = _bias(emit, 6) if known else None
    if bias is None:
        return None
    turned = {name: emit.attribute(name, 0) for name in ("transA", "transB")}
    given = contrib.numbers(emit, 0), _weight(emit, 1 - turned["transB"])
    return contrib.integers(emit, emit("Gemm", *given, *bias, **turned), 7)


def _standard(emit: Emitter) -> str | None:
    """Microsoft's conversions as ONNX's; None if the opset's conversions have no axis yet."""
    of_one = emit.graph.opset >= _CONVERSIONS and not emit.shape(emit.input(1))
    if not domain_of(emit.node) or not (of_one or emit.graph.opset >= _AXES):
        return None
    axis = None if of_one else emit.attribute("axis")
    return emit(emit.node.op_type, *emit.node.input, axis=axis)


def _weight(emit: Emitter, axis: int) -> str:
    return emit("DequantizeLinear", *(emit.input(at) for at in (3, 4, 5)), axis=axis)


def _bias(emit: Emitter, at: int) -> list[str] | None:
    """An int32 bias as floats in the sums' scale; [] without a bias, None for other forms."""
    if not emit.input(at):
        return []
    left, right = (np.asarray(emit.graph.value(emit.input(one))) for one in (1, 4))
    scale = (left.reshape(()) * right).reshape(-1)
    if not _are_scales(scale) or len(emit.shape(emit.input(at))) != 1:
        return None
    whole = scale.reshape(()) if scale.size == 1 else scale
    return [emit("DequantizeLinear", emit.input(at), emit.constant(whole), axis=0)]


_OPERATORS: dict[str, Expand] = {
    "DequantizeLinear": _standard,
    "QuantizeLinear": _standard,
    "QGemm": _gemm,
    "QLinearAdd": _pair("Add"),
    "QLinearAveragePool": _means,
    "QLinearConcat": contrib.q_linear_concat,
    "QLinearConv": _convolution,
    "QLinearGlobalAveragePool": _mean,
    "QLinearLeakyRelu": contrib.q_linear_leaky_relu,
    "QLinearMatMul": _product,
    "QLinearMul": _pair("Mul"),
    "QLinearReduceMean": contrib.q_linear_reduce_mean,
    "QLinearSigmoid": contrib.q_linear_sigmoid,
    "QLinearSoftmax": contrib.q_linear_softmax,
    "QLinearWhere": contrib.q_linear_where,
}
