"""Write a decoder of random weights, as onnxruntime-genai's builder exports a Llama.

    python -m benchmarks decoder q4.onnx --weights q4
    python -m benchmarks decoder q8.onnx --weights q8 --layers 12

Weights have 4 or 8 bits (MatMulNBits: q4, q8), a byte each with a scale for each column
(DequantizeLinear: qdq), or are float16 (f16). They lie in a file beside the model, which is written
while they are made, so that memory holds only one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import click
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.options import number

FLOAT, WHOLE, SHORT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
BLOCK = 32  # elements that share a scale
# Random numbers drawn once; each weight repeats them from another offset.
_DRAWN = (1 << 22) + 61
# Tensors from so many bytes on lie beside the file, each at the beginning of a page.
_LARGE, _PAGE = 4096, 4096


@click.command
@click.argument("output", type=Path)
@click.option("--weights", type=click.Choice(["q4", "q8", "qdq", "f16"]), default="q4")
@number("--layers", 16)
@number("--width", 2048)
@number("--inner", 8192, "Of the feed-forward layers.")
@number("--heads", 32)
@number("--groups", 8, "Heads of keys and values.")
@number("--words", 32000)
@number("--room", 1152, "Positions that there are angles for.")
def command(output: Path, weights: str, **sizes: int) -> None:
    """Write the model file, and its weights beside it."""
    with output.with_suffix(".data").open("wb") as data:
        onnx.save(_Decoder(weights, sizes, data).model(), output)
    print(f"{output}: {output.with_suffix('.data').stat().st_size / 1e9:.3f} GB of weights")


@dataclass
class _Decoder:
    """The graph under construction; a call adds a node and returns the name of its result."""

    weights: str
    sizes: Mapping[str, int]
    data: BinaryIO
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: list[onnx.TensorProto] = field(default_factory=list)
    drawn: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        random = np.random.default_rng(0)  # integers whose dequantised values spread around zero
        high, low = (random.integers(1, 16, _DRAWN, np.uint8) for _ in range(2))
        whole = random.integers(1, 256, _DRAWN, np.uint8)
        self.drawn = high << 4 | low if self.weights == "q4" else whole
        self.width, self.heads, self.groups = (self.sizes[n] for n in ("width", "heads", "groups"))
        self.size = self.width // self.heads

    def __call__(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        out = out or f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [out], name=out, **attributes))
        return out

    def contrib(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        return self(op, *inputs, out=out, domain="com.microsoft", **attributes)

    def constant(self, values: np.ndarray) -> str:
        """Add a constant; the bytes of a large one go to the file of weights."""
        name = f"w_{len(self.tensors)}"
        large = values.nbytes >= _LARGE
        self.tensors.append(self._beside(values) if large else numpy_helper.from_array(values))
        self.tensors[-1].name = name
        return name

    def _beside(self, values: np.ndarray) -> onnx.TensorProto:
        kind = helper.np_dtype_to_tensor_dtype(values.dtype)
        tensor = TensorProto(dims=values.shape, data_type=kind, data_location=TensorProto.EXTERNAL)
        place = {"location": Path(self.data.name).name, "offset": self.data.tell()}
        for key, value in {**place, "length": values.nbytes}.items():
            tensor.external_data.add(key=key, value=str(value))
        self.data.write(np.ascontiguousarray(values).tobytes())
        self.data.write(bytes(-self.data.tell() % _PAGE))
        return tensor

    def bytes(self, *shape: int) -> np.ndarray:
        """Random bytes, which differ from weight to weight."""
        begun = 7919 * len(self.tensors) % _DRAWN
        count = int(np.prod(shape))
        return np.resize(np.roll(self.drawn, -begun), count).reshape(shape)

    def scales(self, *shape: int, steps: int, columns: int) -> np.ndarray:
        """Random scales with which a product keeps the spread of its input."""
        spread = steps / 12**0.5 * columns**0.5
        return (0.5 + self.bytes(*shape).astype(np.float32) / 255) / np.float32(spread)

    def product(self, x: str, rows: int, columns: int, out: str = "") -> str:
        """The product of `x`, with so many columns, and a weight with so many rows."""
        return _PRODUCTS[self.weights](self, x, rows, columns, out)

    def in_blocks(self, x: str, rows: int, columns: int, out: str) -> str:
        bits, blocks = int(self.weights[1]), columns // BLOCK
        steps = self.constant(self.bytes(rows, blocks, BLOCK * bits // 8))
        scales = self.constant(self.scales(rows, blocks, steps=2**bits, columns=columns))
        sizes: dict[str, Any] = {"K": columns, "N": rows, "bits": bits, "block_size": BLOCK}
        sizes["accuracy_level"] = 4  # allows to round activations to int8, as genai's builder does
        return self.contrib("MatMulNBits", x, steps, scales, **sizes, out=out)

    def in_columns(self, x: str, rows: int, columns: int, out: str) -> str:
        steps = self.constant(self.bytes(columns, rows).view(np.int8))
        scales = self.constant(self.scales(rows, steps=256, columns=columns))
        return self("MatMul", x, self("DequantizeLinear", steps, scales, axis=1), out=out)

    def in_halves(self, x: str, rows: int, columns: int, out: str) -> str:
        steps = self.bytes(columns, rows).astype(np.float32) - 127.5
        weight = self.constant((steps / (73.6 * columns**0.5)).astype(np.float16))
        return self("MatMul", x, self("Cast", weight, to=FLOAT), out=out)

    def embedded(self) -> str:
        words, blocks = self.sizes["words"], self.width // BLOCK
        steps = self.constant(self.bytes(words, self.width // 2))
        scales = self.constant(np.full((words, blocks), 0.2, np.float32))
        how: dict[str, Any] = {"gather_axis": 0, "quantize_axis": 1, "block_size": BLOCK, "bits": 4}
        return self.contrib("GatherBlockQuantized", steps, "input_ids", scales, **how)

    def ones(self) -> str:
        return self.constant(np.ones(self.width, np.float32))

    def lengths(self) -> tuple[str, str]:
        """The index of the last row before those of this step, and the number of all rows."""
        one = self.constant(np.array([1]))
        counted = self("Sub", self("ReduceSum", "attention_mask", one, keepdims=0), one)
        total = self("Gather", self("Shape", "attention_mask"), self.constant(np.array(1)), axis=0)
        return self("Cast", counted, to=SHORT), self("Cast", total, to=SHORT)

    def angles(self) -> tuple[str, str]:
        turned = 10000.0 ** -(np.arange(self.size // 2) / (self.size // 2))
        angles = np.outer(np.arange(self.sizes["room"]), turned)
        cos, sin = (self.constant(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
        return cos, sin

    def attention(self, x: str, at: int, shared: tuple[str, ...]) -> str:
        made = self.product(x, (self.heads + 2 * self.groups) * self.size, self.width)
        past = [f"past_key_values.{at}.{part}" for part in ("key", "value")]
        outputs = [f"attended_{at}", f"present.{at}.key", f"present.{at}.value"]
        how = {"num_heads": self.heads, "kv_num_heads": self.groups, "do_rotary": 1}
        inputs = [made, "", "", *past, *shared]
        node = helper.make_node("GroupQueryAttention", inputs, outputs, domain="com.microsoft",
                                scale=self.size**-0.5, **how)  # fmt: skip
        self.nodes.append(node)
        return self.product(outputs[0], self.width, self.width)

    def added(self, x: str, more: str) -> tuple[str, str]:
        """The sum of both, and the normalised sum."""
        at = len(self.nodes)
        outputs = [f"norm_{at}", "", "", f"sum_{at}"]
        inputs = [x, more, self.ones()]
        node = helper.make_node("SkipSimplifiedLayerNormalization", inputs, outputs,
                                domain="com.microsoft", epsilon=1e-6)  # fmt: skip
        self.nodes.append(node)
        return outputs[3], outputs[0]

    def feed_forward(self, x: str) -> str:
        inner = self.sizes["inner"]
        gate, other = (self.product(x, inner, self.width) for _ in range(2))
        gate = self("Mul", gate, self("Sigmoid", gate))
        return self.product(self("Mul", gate, other), self.width, inner)

    def model(self) -> onnx.ModelProto:
        shared = *self.lengths(), *self.angles()
        x = self.embedded()
        norm = self("SimplifiedLayerNormalization", x, self.ones(), axis=-1, epsilon=1e-6)
        for at in range(self.sizes["layers"]):
            x, norm = self.added(x, self.attention(norm, at, shared))
            x, norm = self.added(x, self.feed_forward(norm))
        self.product(norm, self.sizes["words"], self.width, out="logits")
        graph = helper.make_graph(self.nodes, "decoder", *self.interface(), self.tensors)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def interface(self) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
        named = helper.make_tensor_value_info
        parts = [f"{at}.{part}" for at in range(self.sizes["layers"]) for part in ("key", "value")]

        def caches(what: str, length: str) -> list[onnx.ValueInfoProto]:
            shape = ["batch_size", self.groups, length, self.size]
            return [named(f"{what}.{part}", FLOAT, shape) for part in parts]

        inputs = [
            named("input_ids", WHOLE, ["batch_size", "sequence_length"]),
            named("attention_mask", WHOLE, ["batch_size", "total_sequence_length"]),
            *caches("past_key_values", "past_sequence_length"),
        ]
        logits = named("logits", FLOAT, ["batch_size", "sequence_length", self.sizes["words"]])
        return inputs, [logits, *caches("present", "total_sequence_length")]


_PRODUCTS: Mapping[str, Callable[[_Decoder, str, int, int, str], str]] = {
    "q4": _Decoder.in_blocks,
    "q8": _Decoder.in_blocks,
    "qdq": _Decoder.in_columns,
    "f16": _Decoder.in_halves,
}
