"""Groups of columns that end within a vector get an axis of their own.

    for h, w, c: for k: out[h, w, c] += a[h, w, c // G * K + k] * weight[k, c]
    -->
    for g, h, w, c: for k: out[g, h, w, c] += a[h, w, g * K + k] * weight[k, g * G + c]

No vector holds columns of two groups, which read different rows. Twenty columns would so be five
vectors of four; with an axis for groups they are one of sixteen and a rest.
"""

import math
from typing import Any

from .._tvm import tirx
from ..target import Target
from .block_view import SPATIAL, BlockView
from .loops import lanes
from .packing import ON_CONSTANT
from .state import State
from .tile_sizes import columns_of_groups

# Vectors of this many elements are wide enough: where registers hold twice as many, sixteen of 24
# columns and a rest were no faster.
WIDE = 8


def columns_apart(view: BlockView, target: Target) -> int:
    """Columns of each group of a reduction in 32 bits that should be split off; 0 for none."""
    columns, width = columns_of_groups(view), min(WIDE, lanes(target, view.bits))
    (made,) = [region.source for region in view.node.writes]
    images = made.dtype in ("float32", "int32") and len(view.spatial) > 2
    gains = images and math.gcd(columns, width) < min(columns, width)
    return columns if gains and all(_reads_in_place(one, view) for one in view.consumers) else 0


def split_groups(state: State, view: BlockView, target: Target) -> bool:
    """Split the columns of a grouped reduction, and of its epilogue, where vectors gain by that.

    Returns whether it did. TVM then knows no constant number of inputs that a tile reads.
    """
    sch, rank, columns = state.sch, len(view.spatial), columns_apart(view, target)
    if not columns:
        return False
    (epilogue,) = view.consumers
    # The buffer last: TVM simplifies indices when it changes a buffer, but not for a block.
    elements = _split(epilogue, rank, columns)
    sch.transform_block_layout(view.rv, _split(view, len(view.node.iter_vars), columns))
    sch.transform_block_layout(epilogue.rv, elements)
    sch.transform_layout(view.rv, ("write", 0), elements)
    for position, indices in view.reads:
        if view.has_constant(view.node.reads[position].source):
            _split_weights(state, view, position, len(indices), columns)
    return True


def _split_weights(state: State, view: BlockView, position: int, rank: int, columns: int) -> None:
    """Give the groups of a constant's columns, its last axis, an axis of their own."""
    sch = state.sch
    copy = sch.cache_read(view.rv, position, "global")
    apart = lambda *at: [*at[:-1], at[-1] // columns, at[-1] % columns]  # noqa: E731
    dtype = BlockView(sch, copy).node.iter_vars[0].var.ty.dtype
    index_map = tirx.IndexMap.from_func(apart, rank, index_dtype=dtype)
    sch.transform_block_layout(copy, index_map)
    sch.transform_layout(view.rv, ("read", position), index_map)
    sch.annotate(copy, ON_CONSTANT, True)
    state.finish(copy)


def _reads_in_place(epilogue: BlockView, view: BlockView) -> bool:
    """Whether an epilogue goes over the elements of a result in their order."""
    (made,) = [region.source for region in view.node.writes]
    own = [axis.var for axis in epilogue.axes(SPATIAL)]
    reads = [indices for buffer, indices in epilogue.operands if buffer.same_as(made)]
    same = lambda indices: all(map(lambda i, v: i.same_as(v), indices, own))  # noqa: E731
    return all(len(indices) == len(own) and same(indices) for indices in reads)


def _split(view: BlockView, rank: int, columns: int) -> Any:
    """An index map for the first `rank` axes of a block: the axis of groups follows the batch.

    Reducing axes with one step are dropped: TVM would take them for data-parallel ones.
    """
    last, extents = len(view.spatial) - 1, [*view.spatial, *view.reduced]

    def split(*indices: Any) -> list[Any]:
        batch, *rows = indices[:last]
        column = indices[last]
        reduced = [indices[at] for at in range(last + 1, rank) if extents[at] > 1]
        return [batch, column // columns, *rows, column % columns, *reduced]

    return tirx.IndexMap.from_func(split, rank, index_dtype=view.node.iter_vars[0].var.ty.dtype)
