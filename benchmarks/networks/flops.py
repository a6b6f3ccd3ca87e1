"""Floating-point operations of an ONNX model: twice the multiply-adds of its heavy operators.

This counts what the model asks for. A library that skips some of it, such as the zeros in a
transposed convolution with strides, may exceed the machine's peak.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import onnx

from ansor_deploy.model.graph.fold import sort_and_fold
from ansor_deploy.model.graph.graph import Graph

Shapes = Mapping[str, tuple[int, ...]]


def count_flops(model: onnx.ModelProto) -> int:
    """FLOP of convolutions, transposed convolutions, Gemm and MatMul; others count as free.

    Sizes that the model computes from its inputs' shapes are computed first. ValueError if one of
    these operators has a size that stays unknown.
    """
    graph = Graph.of(model)
    sort_and_fold(graph)
    graph.infer()
    return sum(_node_flops(node, graph.shapes) for node in graph.nodes)


def _node_flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    if node.op_type not in ("Conv", "ConvTranspose", "MatMul", "Gemm"):
        return 0
    if not shapes.keys() >= {node.output[0], *node.input[:2]}:
        raise ValueError(f"the sizes of node {node.name} ({node.op_type}) are not known")
    if node.op_type == "Conv":  # each output takes input channels of a group x taps
        return 2 * prod(shapes[node.output[0]]) * prod(shapes[node.input[1]][1:])
    if node.op_type == "ConvTranspose":  # each input does, in the weight's other layout
        return 2 * prod(shapes[node.input[0]]) * prod(shapes[node.input[1]][1:])
    return 2 * prod(shapes[node.output[0]]) * _reduced(node, shapes[node.input[0]])


def _reduced(node: onnx.NodeProto, left: tuple[int, ...]) -> int:
    transposed = any(a.name == "transA" and a.i for a in node.attribute)
    return left[0] if transposed else left[-1]
