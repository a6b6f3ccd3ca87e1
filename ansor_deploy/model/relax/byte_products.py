"""How many multiply-adds of bytes a task does: the unit of an integer kernel's speed."""

from __future__ import annotations

import math
from typing import Any

from ..._tvm import collect, tirx, tvm
from ...space.block_view import sums_products


def byte_products(program: Any) -> float:
    """Multiply-adds of bytes into 32 bits in one run of a task's program; 0 if there are none.

    They include those with the zeros that fill sums up to four steps.
    """
    return float(sum(map(_products, collect(program["main"].body, tvm.s_tir.SBlock))))


def _products(block: Any) -> int:
    """Those of a block itself, without the blocks within it."""
    store = block.body
    if not isinstance(store, tirx.BufferStore) or str(store.buffer.dtype) != "int32":
        return 0
    read = {str(region.source.dtype) for region in block.reads}
    if not sums_products(store) or not read & {"int8", "uint8"}:
        return 0
    return math.prod(int(axis.dom.extent) for axis in block.iter_vars)
