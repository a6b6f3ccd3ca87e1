"""Floating-point operations of an ONNX model: twice the multiply-adds of its heavy operators.

This counts what the model asks for. A library that skips some of it, such as the zeros in a
transposed convolution with strides, may exceed the machine's peak.
"""

from __future__ import annotations

from math import prod

import onnx

Shapes = dict[str, list[int]]


def count_flops(model: onnx.ModelProto) -> int:
    """FLOP of convolutions, transposed convolutions, Gemm and MatMul; others count as free."""
    shapes = _shapes(model)
    return sum(_node_flops(node, shapes) for node in model.graph.node)


def _shapes(model: onnx.ModelProto) -> Shapes:
    """The shape of every tensor that has a static one."""
    shapes = {weight.name: list(weight.dims) for weight in model.graph.initializer}
    graph = onnx.shape_inference.infer_shapes(model).graph
    for value in (*graph.input, *graph.value_info, *graph.output):
        shapes[value.name] = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    return shapes


def _node_flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    if node.op_type == "Conv":  # each output takes input channels of a group x taps
        return 2 * prod(shapes[node.output[0]]) * prod(shapes[node.input[1]][1:])
    if node.op_type == "ConvTranspose":  # each input does, in the weight's other layout
        return 2 * prod(shapes[node.input[0]]) * prod(shapes[node.input[1]][1:])
    if node.op_type in ("MatMul", "Gemm"):
        return 2 * prod(shapes[node.output[0]]) * _reduced(node, shapes[node.input[0]])
    return 0


def _reduced(node: onnx.NodeProto, left: list[int]) -> int:
    transposed = any(a.name == "transA" and a.i for a in node.attribute)
    return left[0] if transposed else left[-1]
