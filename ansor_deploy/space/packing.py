"""Packing: operands of a micro-kernel as panels, which it reads from one end to the other."""

import math
from typing import Any

from .._tvm import tirx, uses
from ..target import Target
from .block_view import REDUCE, SPATIAL, BlockView
from .loops import parallel_map
from .state import State

# Rows that use a panel: from here copying it may pay, and from here it mostly does.
PACKING_PAYS = 64
PACKING_WINS = 128
# Of a second cache, about: lines that are so much of it apart share a set.
WAYS = 16
# A builder takes a stage of this mark out of the program, and runs it on the constant.
ON_CONSTANT = "meta_schedule.layout_rewrite_preproc"


def is_packing(sch: Any, block: Any) -> bool:
    """Whether the block is a copy that the builder takes out of the program."""
    return ON_CONSTANT in (sch.get(block).annotations or {})


def panel_bytes(view: BlockView, columns: int) -> int:
    """Bytes that so many columns of a float32 operand take, packed."""
    return math.prod(view.reduced) * columns * 4


def panel_room(view: BlockView, columns: int, target: Target) -> int:
    """Bytes of the second cache that a panel takes, which may be more than it has.

    Where it is not packed, its rows are as far apart as those of the whole operand: at a multiple
    of a power of two they share a part of the cache's sets, and the others are of no use to it.
    """
    column, room = view.axes(SPATIAL)[-1].var, panel_bytes(view, columns)
    for position, indices in view.reads:
        if len(indices) > 1 and indices[-1].same_as(column):
            stride = int(view.node.reads[position].source.shape[-1]) * 4
            apart = min(stride & -stride, target.l2_bytes // WAYS)
            room = max(room, room * apart // (columns * 4))
    return room


def pack_operands(state: State, view: BlockView, columns: int, target: Target) -> bool:
    """Bring operands into panels: constants always, others where their columns lie apart.

    Of others with contiguous columns it is a choice, where enough rows use a panel. Returns whether
    there are panels of constants.
    """
    constant = False
    sch, buffers = state.sch, [region.source for region in view.node.reads]
    column = view.axes(SPATIAL)[-1].var
    for position, indices in view.reads:
        axes = [at for at, index in enumerate(indices) if index.same_as(column)]
        if len(axes) != 1 or len(indices) < 2:
            continue
        if _is_made_beforehand(view, buffers[position]):
            _transform(view, position, axes[0], columns)
            constant = True
            continue
        free = view.has_constant(buffers[position])
        apart = axes[0] != len(indices) - 1
        if free or apart or _is_worth_packing(state, view, indices, columns, target):
            copy = _pack(sch, view.rv, position, axes[0], columns)
            constant |= free
            if free:
                sch.annotate(copy, ON_CONSTANT, True)
            elif apart:
                # Its elements are gathered anyway: straight loops do that best.
                sch.parallel(sch.fuse(*sch.get_loops(copy)[:-1]))
            else:
                parallel_map(sch, copy, target)
            state.finish(copy)
    return constant


def _is_made_beforehand(view: BlockView, buffer: Any) -> bool:
    """Whether a stage on a constant computes the operand: it can as well write panels."""
    return any(
        is_packing(view.sch, producer.rv) and producer.node.writes[0].source.same_as(buffer)
        for producer in view.producers
    )


def _pack(sch: Any, block: Any, position: int, axis: int, columns: int) -> Any:
    """Copy an operand into panels of `columns`, and return the copying block.

    [b, .., c, ..] -> [b, c / columns, .., .., c % columns]
    """
    copy = sch.cache_read(block, position, "global")
    _transform(BlockView(sch, block), position, axis, columns)
    return copy


def _transform(view: BlockView, position: int, axis: int, columns: int) -> None:
    """Let an operand that a stage makes be in panels."""
    batch = _batch_axes(view, position, axis)

    def panels(*indices: Any) -> list[Any]:
        rest = [index for at, index in enumerate(indices) if at not in (axis, *batch)]
        panel, column = indices[axis] // columns, indices[axis] % columns
        return [*(indices[at] for at in batch), panel, *rest, column]

    # What stands behind the last column is never used, but is part of the library.
    zero = tirx.const(0, view.node.reads[position].source.dtype)
    surplus = zero if view.spatial[-1] % columns else None
    view.sch.transform_layout(view.rv, ("read", position), panels, pad_value=surplus)


def _batch_axes(view: BlockView, position: int, axis: int) -> list[int]:
    """The axes of an operand along which the result alone moves, without that of the columns."""
    reduced = [one.var for one in view.axes(REDUCE)]
    indices = next(indices for at, indices in view.reads if at == position)
    moving = [at for at, index in enumerate(indices) if not isinstance(index, tirx.IntImm)]
    return [
        at for at in moving if at != axis and not any(uses(indices[at], var) for var in reduced)
    ]


def _is_worth_packing(
    state: State, view: BlockView, indices: list[Any], columns: int, target: Target
) -> bool:
    """Whether copying pays, which only a measurement knows: it takes a tenth of the rest at times.

    The guess is that a panel beyond the first cache is worth it, where many rows use it.
    """
    rows = math.prod(
        int(axis.dom.extent)
        for axis in view.axes(SPATIAL)
        if not any(uses(index, axis.var) for index in indices)
    )
    if rows < PACKING_PAYS or columns >= view.spatial[-1]:
        return False
    wins = panel_bytes(view, columns) > target.l1_bytes and rows >= PACKING_WINS
    return state.choose("pack", [False, True], guess=int(wins))
