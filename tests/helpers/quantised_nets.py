"""Small quantised networks with the building blocks of large ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx

from benchmarks.networks.quantised import quantised
from helpers.graphs import model, node, randn

SHAPE = (1, 8, 14, 14)
_SAME = {"pads": [1, 1, 1, 1]}


class _Net:
    """A float network that grows layer by layer; each method returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def op(self, op: str, inputs: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(node(op, inputs, name, **attributes))
        return name

    def weight(self, *shape: int) -> str:
        """Random weights, scaled so that outputs are as large as inputs."""
        name, fan = f"w{len(self.constants)}", int(np.prod(shape[1:])) or 1
        spread = np.float32((2 / fan) ** 0.5)
        self.constants[name] = randn(len(self.constants), *shape) * spread
        return name

    def conv(self, x: str, *shape: int, **attributes: object) -> str:
        weight, bias = self.weight(*shape), self.weight(shape[0])
        return self.op("Conv", f"{x} {weight} {bias}", **attributes)

    def relu(self, x: str) -> str:
        return self.op("Relu", x)

    def head(self, x: str, channels: int) -> str:
        """The mean of each channel, and a classifier with 24 classes."""
        flat = self.op("Flatten", self.op("GlobalAveragePool", x))
        return self.op("Gemm", f"{flat} {self.weight(24, channels)} {self.weight(24)}", transB=1)

    def model(self, *outputs: str) -> onnx.ModelProto:
        return model(self.nodes, {"x": SHAPE}, outputs, self.constants)


def residual() -> onnx.ModelProto:
    net = _Net()
    first = net.relu(net.conv("x", 24, 8, 3, 3, **_SAME))
    last = net.relu(net.op("Add", f"{net.conv(first, 24, 24, 1, 1)} {first}"))
    other = net.op("Add", f"{net.conv(last, 24, 24, 3, 3, **_SAME)} {last}")
    return net.model(net.head(other, 24), other)


def depthwise() -> onnx.ModelProto:
    """Inverted residuals, whose activations are clipped at six."""
    net = _Net()
    net.constants |= {"low": np.float32(0), "high": np.float32(6)}
    wide = net.op("Clip", f"{net.conv('x', 32, 8, 1, 1)} low high")
    deep = net.conv(wide, 32, 1, 3, 3, group=32, **_SAME)
    narrow = net.conv(net.op("Clip", f"{deep} low high"), 8, 32, 1, 1)
    added = net.op("Add", f"{narrow} x")
    return net.model(net.head(added, 8), added)


def grouped() -> onnx.ModelProto:
    """Grouped convolutions with a channel shuffle in between."""
    net = _Net()
    net.constants |= {
        "apart": np.array([1, 3, 8, 14, 14], np.int64),
        "again": np.array([1, 24, 14, 14], np.int64),
    }
    first = net.relu(net.conv("x", 24, 4, 3, 3, group=2, **_SAME))
    turned = net.op("Transpose", net.op("Reshape", f"{first} apart"), perm=[0, 2, 1, 3, 4])
    mixed = net.op("Reshape", f"{turned} again")
    last = net.relu(net.conv(mixed, 24, 8, 3, 3, group=3, strides=[2, 2], **_SAME))
    return net.model(net.head(last, 24), last)


def pools() -> onnx.ModelProto:
    net = _Net()
    first = net.relu(net.conv("x", 16, 8, 3, 3, **_SAME))
    most = net.op("MaxPool", first, kernel_shape=[3, 3], strides=[2, 2])
    mean = net.op("AveragePool", most, kernel_shape=[3, 3], **_SAME)
    last = net.relu(net.conv(mean, 24, 16, 1, 1))
    halves = net.op("AveragePool", last, kernel_shape=[2, 2], strides=[2, 2])
    return net.model(net.head(last, 24), mean, halves)


def branches() -> onnx.ModelProto:
    """Convolutions of several sizes side by side."""
    net = _Net()
    squeezed = net.relu(net.conv("x", 8, 8, 1, 1))
    parts = [net.relu(net.conv(squeezed, 16, 8, 3, 3, **_SAME)), net.conv(squeezed, 16, 8, 1, 1)]
    parts.append(net.op("MaxPool", squeezed, kernel_shape=[3, 3], **_SAME))
    beside = net.op("Concat", " ".join(parts), axis=1)
    return net.model(net.head(beside, 40), beside)


def gates() -> onnx.ModelProto:
    """Swish, and channels weighted by a function of their means."""
    net = _Net()
    first = net.conv("x", 16, 8, 3, 3, **_SAME)
    swish = net.op("Mul", f"{first} {net.op('Sigmoid', first)}")
    squeezed = net.relu(net.conv(net.op("GlobalAveragePool", swish), 8, 16, 1, 1))
    gate = net.op("Sigmoid", net.conv(squeezed, 16, 8, 1, 1))
    weighed = net.op("Mul", f"{swish} {gate}")
    return net.model(net.head(weighed, 16), weighed)


def layers() -> onnx.ModelProto:
    """Dense layers with a residual sum."""
    net = _Net()
    net.constants["rows"] = np.array([14, 112], np.int64)
    rows = net.op("Reshape", "x rows")
    inner = net.relu(net.op("Gemm", f"{rows} {net.weight(112, 96)} {net.weight(96)}"))
    product = net.op("MatMul", f"{inner} {net.weight(96, 112)}")
    added = net.op("Add", f"{product} {rows}")
    return net.model(net.op("MatMul", f"{added} {net.weight(112, 40)}"), added)


def decoder() -> onnx.ModelProto:
    """Transposed convolutions around other kinds."""
    net = _Net()
    narrow = net.relu(net.conv("x", 16, 8, 3, 3, strides=[2, 2], **_SAME))
    grown = f"{narrow} {net.weight(16, 24, 3, 3)} {net.weight(24)}"
    wide = net.op("ConvTranspose", grown, strides=[2, 2], output_padding=[1, 1], **_SAME)
    deep = net.conv(net.relu(wide), 24, 1, 3, 3, group=24, **_SAME)
    last = net.op("ConvTranspose", f"{deep} {net.weight(24, 4, 2, 2)}", strides=[2, 2], group=2)
    return net.model(net.head(last, 8), last)


_STRUCTURES = (residual, depthwise, grouped, pools, branches, gates, layers, decoder)
_MADE = {make.__name__: make for make in _STRUCTURES}
# STRUCTURE:WAY, each structure in some of the ways of quantising.
NAMES = (
    "residual:qdq", "residual:qoperator", "residual:dynamic", "depthwise:qdq-s8",
    "depthwise:dynamic", "grouped:qdq-tensor", "pools:qoperator", "branches:qdq-s8", "gates:qdq",
    "layers:dynamic", "decoder:qdq-u16",
)  # fmt: skip


@cache
def network(name: str) -> onnx.ModelProto:
    """A network by its name: one of `NAMES`, or another pair of structure and way."""
    structure, way = name.split(":")
    return quantised(_MADE[structure](), way)
