"""Rows: axes of a result that share operands are fused, so that tiles need not divide each axis.

    for h, w, c: for k: out[h, w, c] += a[h, w, k] * weight[k, c]
    -->
    for r, c: for k: out[r, c] += a[r / W, r % W, k] * weight[k, c]

Seven by seven positions are 49 rows: a tile then leaves one rest at the end, not one in each row of
the image.
"""

import math
from typing import Any

from .._tvm import tirx
from .block_view import SPATIAL, BlockView
from .tile_sizes import indexing_axes


def fuse_rows(sch: Any, view: BlockView) -> int:
    """Fuse the innermost row axes of a reduction and of its elementwise epilogue into one axis.

    Nothing is fused where an operand uses only some of these axes, where all operands have columns,
    or where the epilogue does not go over the same rows. Returns the extent of the innermost fused
    axis, or 0.
    """
    first, count = _rows(view)
    (epilogue,) = view.consumers
    wide = sum(extent > 1 for extent in view.spatial[first : first + count])
    at = _epilogue_rows(view, epilogue, first, count) if wide > 1 else None
    if at is None:
        return 0
    rank, width = len(view.spatial), view.spatial[first + count - 1]
    sch.transform_layout(view.rv, ("write", 0), _fused(view, rank, first, count))
    sch.transform_block_layout(view.rv, _fused(view, len(view.node.iter_vars), first, count))
    sch.transform_block_layout(epilogue.rv, _fused(epilogue, len(epilogue.spatial), at, count))
    return width


def _rows(view: BlockView) -> tuple[int, int]:
    """The innermost axes before the columns that the same operands use: (first, how many)."""
    operands = indexing_axes(view)
    last = len(view.spatial) - 1
    first = last
    while first and all(used[first - 1] == used[last - 1] for used in operands):
        first -= 1
    reused = any(not used[last - 1] for used in operands) and not all(u[-1] for u in operands)
    return (first, last - first) if reused else (last, 0)


def _epilogue_rows(view: BlockView, epilogue: BlockView, first: int, count: int) -> int | None:
    """The position of these axes among the epilogue's; None where it has no such axes in order."""
    (made,) = [region.source for region in view.node.writes]
    reads = [indices for buffer, indices in epilogue.operands if buffer.same_as(made)]
    own = [axis.var for axis in epilogue.axes(SPATIAL)]
    places = {
        tuple(
            next((at for at, var in enumerate(own) if var.same_as(index)), -1)
            for index in indices[first : first + count]
        )
        for indices in reads
    }
    if len(places) != 1:
        return None
    (place,) = places
    start = place[0]
    same = epilogue.spatial[start : start + count] == view.spatial[first : first + count]
    return start if place == tuple(range(start, start + count)) and same else None


def _fused(view: BlockView, rank: int, at: int, count: int) -> Any:
    """An index map for the first `rank` axes of a block that fuses `count` of them from `at` on.

    Reducing axes with one step are dropped: TVM would take them for data-parallel ones.
    """
    extents = [*view.spatial, *view.reduced][:rank]
    rows = range(at, at + count)
    strides = {one: math.prod(extents[one + 1 : at + count]) for one in rows}
    kept = [one for one in range(at + count, rank) if extents[one] > 1 or one < len(view.spatial)]

    def fused(*indices: Any) -> list[Any]:
        row = sum(indices[one] * strides[one] for one in rows if extents[one] > 1)
        return [*indices[:at], row, *(indices[one] for one in kept)]

    return tirx.IndexMap.from_func(fused, rank, index_dtype=view.node.iter_vars[0].var.ty.dtype)
