"""Writes a small Llama with random weights, in the form in which exporters write decoders.

    python llama.py llama.onnx --layers 4 --width 256

A step takes a token, its position, a mask, and the keys and values of all earlier tokens. It gives
the logits of the next token, and the keys and values with the new rows appended.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZES = {"layers": 2, "width": 64, "heads": 4, "groups": 2, "words": 256}


def llama(**sizes: int) -> onnx.ModelProto:
    """A model with these sizes, and those of `SIZES` for the others."""
    return _Llama(**{**SIZES, **sizes}).model()


class _Llama:
    """The graph under construction; a call adds a node and returns the name of its result."""

    def __init__(self, layers: int, width: int, heads: int, groups: int, words: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.layers, self.width, self.words = layers, width, words
        self.heads, self.groups, self.size = heads, groups, width // heads
        self._random = np.random.default_rng(0)

    def __call__(self, op: str, *inputs: str, out: str = "", **attributes: object) -> str:
        out = out or f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [out], out, **attributes))
        return out

    def constant(self, values: object, kind: type = np.float32) -> str:
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, kind), name))
        return name

    def matrix(self, rows: int, columns: int) -> str:
        values = self._random.standard_normal((rows, columns), np.float32) / rows**0.5
        return self.constant(values)

    def norm(self, x: str) -> str:
        mean = self("ReduceMean", self("Mul", x, x), self.constant([-1], np.int64))
        root = self("Sqrt", self("Add", mean, self.constant(1e-5)))
        return self("Mul", self("Div", x, root), self.constant(np.ones(self.width)))

    def rows(self, x: str, count: int) -> str:
        """Reshape (1, 1, count * size) to (1, count, 1, size)."""
        return self("Reshape", x, self.constant([1, count, 1, self.size], np.int64))

    def turned(self, x: str, cos: str, sin: str) -> str:
        half = [self.size // 2] * 2
        a, b = f"{x}_a", f"{x}_b"
        split = helper.make_node("Split", [x, self.constant(half, np.int64)], [a, b], a, axis=-1)
        self.nodes.append(split)
        swapped = self("Concat", self("Neg", b), a, axis=-1)
        return self("Add", self("Mul", x, cos), self("Mul", swapped, sin))

    def shared(self, x: str) -> str:
        """Repeat each head's rows for all heads of queries that share it."""
        each = self.heads // self.groups
        spread = self("Unsqueeze", x, self.constant([2], np.int64))
        spread = self("Expand", spread, self.constant([1, 1, each, 1, 1], np.int64))
        return self("Reshape", spread, self.constant([1, self.heads, -1, self.size], np.int64))

    def attention(self, x: str, at: int, cos: str, sin: str, bias: str) -> str:
        parts = {}
        for name, count in (("query", self.heads), ("key", self.groups), ("value", self.groups)):
            made = self("MatMul", x, self.matrix(self.width, count * self.size))
            parts[name] = self.rows(made, count)
        query = self.turned(parts["query"], cos, sin)
        parts["key"] = self.turned(parts["key"], cos, sin)
        key, value = (
            self("Concat", f"past.{at}.{name}", parts[name], out=f"present.{at}.{name}", axis=2)
            for name in ("key", "value")
        )
        turned = self("Transpose", self.shared(key), perm=[0, 1, 3, 2])
        scores = self("MatMul", self("Mul", query, self.constant(self.size**-0.5)), turned)
        weights = self("Softmax", self("Add", scores, bias), axis=-1)
        result = self("MatMul", weights, self.shared(value))
        return self("Reshape", result, self.constant([1, 1, self.width], np.int64))

    def feed_forward(self, x: str) -> str:
        inner = 3 * self.width
        gate = self("MatMul", x, self.matrix(self.width, inner))
        gate = self("Mul", gate, self("Sigmoid", gate))
        other = self("MatMul", x, self.matrix(self.width, inner))
        return self("MatMul", self("Mul", gate, other), self.matrix(inner, self.width))

    def model(self) -> onnx.ModelProto:
        frequencies = 10000.0 ** -(np.arange(self.size // 2) / (self.size // 2))
        place = self("Cast", "position_ids", to=TensorProto.FLOAT)
        angles = self("Mul", place, self.constant(np.tile(frequencies, 2)))
        cos, sin = self("Cos", angles), self("Sin", angles)
        mask = self("Cast", "attention_mask", to=TensorProto.FLOAT)
        hidden = self("Sub", self.constant(1), mask)
        bias = self("Mul", hidden, self.constant(-1e9))
        x = self("Gather", self.matrix(self.words, self.width), "input_ids")
        for at in range(self.layers):
            attended = self.attention(self.norm(x), at, cos, sin, bias)
            x = self("Add", x, self("MatMul", attended, self.matrix(self.width, self.width)))
            x = self("Add", x, self.feed_forward(self.norm(x)))
        self("MatMul", self.norm(x), self.matrix(self.width, self.words), out="logits")
        graph = helper.make_graph(self.nodes, "llama", *self.interface(), self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)

    def interface(self) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
        caches = [f"{at}.{name}" for at in range(self.layers) for name in ("key", "value")]
        kind, whole = TensorProto.FLOAT, TensorProto.INT64
        tensor = helper.make_tensor_value_info
        inputs = [
            tensor("input_ids", whole, [1, 1]),
            tensor("attention_mask", whole, [1, "past + 1"]),
            tensor("position_ids", whole, [1, 1]),
        ]
        shape = [1, self.groups, "past", self.size]
        inputs += [tensor(f"past.{name}", kind, shape) for name in caches]
        shape = [1, self.groups, "past + 1", self.size]
        outputs = [tensor("logits", kind, [1, 1, self.words])]
        return inputs, outputs + [tensor(f"present.{name}", kind, shape) for name in caches]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    for name, value in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = vars(parser.parse_args())
    onnx.save(llama(**{name: asked[name] for name in SIZES}), asked["output"])
