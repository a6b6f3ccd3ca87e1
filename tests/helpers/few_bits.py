"""Products whose weights lie in blocks of a few bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from helpers.graphs import node, randn


def few_bits_product(
    rows: int,
    bits: int,
    size: int,
    depth: int,
    columns: int,
    zeros: np.ndarray | None = None,
    **words: Any,
) -> onnx.ModelProto:
    """A MatMulNBits of seeded weights, in blocks of so many steps. zeros: points of the blocks."""
    blocks, rng = -(-depth // size), np.random.default_rng(0)
    packed = rng.integers(0, 256, (columns, blocks, size * bits // 8), np.uint8)
    constants = {"q": packed, "s": randn(1, columns, blocks) / 16}
    if zeros is not None:
        constants["z"] = zeros
    sizes = {"N": columns, "K": depth, "bits": bits, "block_size": size}
    made = node("MatMulNBits", " ".join(["x", *constants]), "y", **sizes, **words)
    made.domain = "com.microsoft"
    weights = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    ends = {"x": [rows, depth], "y": [rows, columns]}
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, size) for n, size in ends.items())
    graph = helper.make_graph([made], "test", [x], [y], weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
