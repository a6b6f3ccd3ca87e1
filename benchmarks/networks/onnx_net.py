"""A thin writer of ONNX graphs: a method for each layer, seeded weights, tensors as names.

Weights are He-scaled and batch norms have random statistics, so that activations stay near unit
size at any depth, and a wrong fold, layout or schedule shows in the output.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8  # the version that came with opset 17


class Net:
    """A graph under construction. `channels` remembers the width of every tensor."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.channels: dict[str, int] = {}

    def input(self, name: str, shape: tuple[int, ...], dtype: int = TensorProto.FLOAT) -> str:
        """Declare a graph input; its second dimension is its width."""
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        self.channels[name] = shape[1]
        return name

    def constant(self, value: Any, dtype: str = "float32") -> str:
        """Store an array as an initializer."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def random(self, shape: tuple[int, ...], scale: float) -> str:
        """Store normally distributed weights of this standard deviation."""
        return self.constant(self.rng.standard_normal(shape, dtype="float32") * np.float32(scale))

    def node(self, op: str, *inputs: str, channels: int | None = None, **attrs: Any) -> str:
        """Append a node with one output, by default as wide as its first input."""
        output = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [output], name=output, **attrs))
        self.channels[output] = channels or self.channels[inputs[0]]
        return output

    def conv(
        self,
        x: str,
        width: int,
        kernel: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        pads: tuple[int, ...] | None = None,
        group: int = 1,
        bias: bool = False,
    ) -> str:
        """A convolution, by default padded to keep the size at stride 1. pads: on one side."""
        fan_in = self.channels[x] // group
        pads = tuple(k // 2 for k in kernel) if pads is None else pads
        weight = self.random((width, fan_in, *kernel), (2 / (fan_in * prod(kernel))) ** 0.5)
        biases = [self.random((width,), 0.1)] if bias else []
        return self.node(
            "Conv", x, weight, *biases, channels=width, kernel_shape=kernel,
            strides=strides or (1,) * len(kernel), pads=pads * 2, group=group,
        )  # fmt: skip

    def conv_transpose(self, x: str, width: int, stride: int, pad: int) -> str:
        """A 4x4 transposed convolution, as image generators use it."""
        fan_in = self.channels[x]
        taps = (4 / stride) ** 2  # kernel positions that contribute to one output
        weight = self.random((fan_in, width, 4, 4), (2 / (fan_in * taps)) ** 0.5)
        return self.node(
            "ConvTranspose", x, weight, channels=width, kernel_shape=(4, 4),
            strides=(stride, stride), pads=(pad,) * 4,
        )  # fmt: skip

    def batch_norm(self, x: str, gain: float = 1.0) -> str:
        """A batch norm; a `gain` below one, at the end of a residual branch, keeps sums small."""
        width = self.channels[x]
        gamma = self.rng.uniform(0.8, 1.2, width) * gain
        beta, mean = self.rng.normal(0, 0.1, (2, width))
        variance = self.rng.uniform(0.5, 1.5, width)
        return self.node(
            "BatchNormalization", x, *map(self.constant, (gamma, beta, mean, variance))
        )

    def relu(self, x: str) -> str:
        """max(x, 0)."""
        return self.node("Relu", x)

    def relu6(self, x: str) -> str:
        """ReLU6 as exporters write it: Clip with tensor bounds."""
        return self.node("Clip", x, self.constant(0.0), self.constant(6.0))

    def linear(self, x: str, width: int) -> str:
        """MatMul and Add over the last axis; weights have unit gain."""
        fan_in = self.channels[x]
        weight = self.random((fan_in, width), fan_in**-0.5)
        product = self.node("MatMul", x, weight, channels=width)
        return self.node("Add", product, self.random((width,), 0.1))

    def classifier(self, x: str, classes: int) -> str:
        """Global average pooling, Flatten and Gemm: the head of an image network."""
        flat = self.node("Flatten", self.node("GlobalAveragePool", x))
        fan_in = self.channels[x]
        weight = self.random((classes, fan_in), fan_in**-0.5)
        bias = self.random((classes,), 0.1)
        return self.node("Gemm", flat, weight, bias, channels=classes, transB=1)

    def model(self, result: str, output: str, shape: tuple[int, ...]) -> onnx.ModelProto:
        """The finished, checked model with `result` as its one output, named `output`."""
        self.nodes.append(helper.make_node("Identity", [result], [output], name=output))
        graph = helper.make_graph(
            self.nodes,
            self.name,
            self.inputs,
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            self.weights,
        )
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(
            graph, ir_version=IR_VERSION, opset_imports=opset, producer_name="ansor-deploy zoo"
        )
        onnx.checker.check_model(model)
        return model
