"""A small product of int8 rows with weights in blocks, and an epilogue, for drawings."""

from __future__ import annotations

from typing import Any

from tvm import te, topi

from ansor_deploy.model.operators.rounded_products import multiplied


def blocks() -> tuple[list[Any], Any]:
    """Two rows of two blocks of 16 integers, times eight columns: the inputs, and the output."""
    kinds = {"rows": "int8", "factors": "float32", "less": "int32", "words": "int32"}
    shapes = [(2, 2, 16), (2, 2), (2, 2), (4, 8)]
    pairs = zip(kinds.items(), shapes, strict=True)
    given = [te.placeholder(shape, kind, name) for (name, kind), shape in pairs]
    given.append(te.placeholder((2, 8), name="scales"))
    return given, topi.nn.relu(multiplied(*given, 8))
