"""Products whose weights are blocks of integers of a few bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from helpers.graphs import contrib, randn, typed


def few_bits_product(
    rows: int,
    bits: int,
    size: int,
    depth: int,
    columns: int,
    zeros: np.ndarray | None = None,
    **words: Any,
) -> onnx.ModelProto:
    """A MatMulNBits with seeded weights in blocks of `size`. zeros: zero points of the blocks."""
    blocks, rng = -(-depth // size), np.random.default_rng(0)
    packed = rng.integers(0, 256, (columns, blocks, size * bits // 8), np.uint8)
    constants = {"q": packed, "s": randn(1, columns, blocks) / 16}
    if zeros is not None:
        constants["z"] = zeros
    sizes = {"N": columns, "K": depth, "bits": bits, "block_size": size}
    made = contrib("MatMulNBits", " ".join(["x", *constants]), "y", **sizes, **words)
    ends = ({"x": ("float32", (rows, depth))}, {"y": ("float32", (rows, columns))})
    return typed([made], *ends, constants, 21)
