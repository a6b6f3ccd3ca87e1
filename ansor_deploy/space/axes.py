"""Axes of a block as several, where one goes over what an operand has several for."""

from collections.abc import Sequence
from typing import Any

from .._tvm import tirx
from .block_view import BlockView


def split_axis(sch: Any, view: BlockView, at: int, strides: Sequence[int]) -> None:
    """Make an axis of a block, which reduces nothing, one for each stride and one for what is left.

    at: its position. strides: outermost first, each a divisor of the one before and of the extent.
    """
    rank = len(view.spatial)

    def parts(*indices: Any) -> list[Any]:
        found, rest = [], indices[at]
        for stride in strides:
            found.append(rest // stride)
            rest = rest % stride
        return [*indices[:at], *found, rest, *indices[at + 1 :]]

    dtype = view.node.iter_vars[at].var.ty.dtype
    sch.transform_block_layout(view.rv, tirx.IndexMap.from_func(parts, rank, index_dtype=dtype))
