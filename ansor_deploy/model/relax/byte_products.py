"""How many products of bytes a task adds up: what an integer kernel's speed is counted in."""

from __future__ import annotations

import math
from typing import Any

from ..._tvm import collect, tirx, tvm
from ...space.block_view import sums_products


def byte_products(program: Any) -> float:
    """Products of bytes that one run of a task's program adds up in 32 bits; 0 for none.

    They include those with the zeros that fill up four steps of a sum.
    """
    return float(sum(map(_products, collect(program["main"].body, tvm.s_tir.SBlock))))


def _products(block: Any) -> int:
    """Of a block itself, and not of those within it."""
    store = block.body
    if not isinstance(store, tirx.BufferStore) or str(store.buffer.dtype) != "int32":
        return 0
    read = {str(region.source.dtype) for region in block.reads}
    if not sums_products(store) or not read & {"int8", "uint8"}:
        return 0
    return math.prod(int(axis.dom.extent) for axis in block.iter_vars)
