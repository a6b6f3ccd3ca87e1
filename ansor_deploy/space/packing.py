"""Packing: operands of a micro-kernel as panels, which it reads from one end to the other."""

import math
from collections.abc import Callable
from typing import Any

from .._tvm import tirx, tvm, uses
from ..marks.dot import STEPS, has_dot, is_one_instruction, multiplies_signed
from ..marks.interleaved import interleave
from ..marks.partition import partitioned
from ..marks.widened_panels import HALVES
from ..target import Target
from .block_view import REDUCE, SPATIAL, BlockView
from .loops import extent, lanes, parallel, parallel_map
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


def panel_elements(view: BlockView, columns: int) -> int:
    """Elements of so many columns of an operand, packed."""
    return math.prod(view.reduced) * columns


def panel_bytes(view: BlockView, columns: int) -> int:
    """Bytes of so many columns of an operand, packed."""
    return panel_elements(view, columns) * _panel_item(view)


def _panel_item(view: BlockView) -> int:
    """Bytes of an element of the operand that has the columns; of float32 where none has.

    A shorter one may be made float32, mostly once for many tiles (`widening.py`).
    """
    column = view.axes(SPATIAL)[-1].var
    having = [b for b, indices in view.operands if any(uses(i, column) for i in indices)]
    short = made_float32(view)
    return min((4 if b in short else b.dtype.itemsize for b in having), default=4)


def made_float32(view: BlockView) -> list[Any]:
    """The operands of less than 32 bits of a product of float32."""
    if any(str(region.source.dtype) != "float32" for region in view.node.writes):
        return []
    return [b for b, _ in view.operands if str(b.dtype) in (*HALVES, "int8")]


def in_words(view: BlockView) -> list[Any]:
    """The operands of a product of float32 of which a word has several weights."""
    if any(str(region.source.dtype) != "float32" for region in view.node.writes):
        return []
    return [b for b, _ in view.operands if str(b.dtype) == "int32"]


def multiplies_by_fours(view: BlockView, columns: int, target: Target) -> bool:
    """Whether a processor best sums up four steps at once, with so many columns in a panel.

    The operands are bytes, four of a row beside each other, or of four lines of a column, and
    signed ones.
    """
    deep, factors = view.axes(REDUCE)[-1], rows_and_weights(view, target)
    if not factors or int(deep.dom.extent) % STEPS:
        return False
    row, weight = ([i for i in indices if uses(i, deep.var)] for indices in factors)
    last = factors[0][-1]
    beside = len(row) == 1 and row[0].same_as(last) and _is_from(last, deep.var, 1)
    whole = len(weight) == 1 and _is_from(weight[0], deep.var, STEPS)
    width = math.gcd(columns, lanes(target))
    if has_own_taps(view):
        return whole and is_one_instruction(target, width)
    return beside and whole and has_dot(target, width)


def rows_and_weights(view: BlockView, target: Target) -> list[list[Any]]:
    """The indices of rows and of weights, of bytes that the processor multiplies; else none.

    Of signed rows weights are constants: only these are known to have no -128.
    """
    kinds = [str(buffer.dtype) for buffer, _ in view.operands]
    weights = [kind == "int8" for kind in kinds]
    if multiplies_signed(target) and all(weights):
        weights = [view.has_constant(buffer) for buffer, _ in view.operands]
    elif multiplies_signed(target) or "uint8" not in kinds:
        return []
    if sorted(weights) != [False, True]:
        return []
    return [view.operands[weights.index(one)][1] for one in (False, True)]


def has_own_taps(view: BlockView) -> bool:
    """Whether each column of a result is made of one column of each operand."""
    column = view.axes(SPATIAL)[-1].var
    return all(indices and indices[-1].same_as(column) for _, indices in view.operands)


def _is_from(index: Any, var: Any, multiple: int) -> bool:
    """Whether an index is a variable, beside a multiple that does not depend on it."""
    beside = tvm.sym.Analyzer().simplify(index - var)
    rest = tvm.sym.Analyzer().simplify(tirx.floormod(beside, multiple))
    return not uses(beside, var) and isinstance(rest, tirx.IntImm) and int(rest.value) == 0


def is_by_fours(view: BlockView) -> bool:
    """Whether an operand of a reduction has been packed by four steps."""
    deep, column = view.axes(REDUCE)[-1].var, view.axes(SPATIAL)[-1].var
    for buffer, indices in view.operands:
        if str(buffer.dtype) != "int8" or len(indices) < 3:
            continue
        steps = int(buffer.shape[-1])
        whole = steps == STEPS or (steps == STEPS // 2 and uses(indices[-3], deep))
        if whole and uses(indices[-1], deep) and uses(indices[-2], column):
            return True
    return False


def panel_room(view: BlockView, columns: int, target: Target) -> int:
    """Bytes of the second cache that a panel takes, which may be more than it has.

    Where it is not packed, its rows are as far apart as those of the whole operand: at a multiple
    of a power of two they share a part of the cache's sets, and the others are of no use to it.
    """
    column, room = view.axes(SPATIAL)[-1].var, panel_bytes(view, columns)
    for position, indices in view.reads:
        if len(indices) > 1 and indices[-1].same_as(column):
            source = view.node.reads[position].source
            stride = int(source.shape[-1]) * source.dtype.itemsize
            apart = min(stride & -stride, target.l2_bytes // WAYS)
            room = max(room, room * apart // (columns * source.dtype.itemsize))
    return room


def pack_operands(state: State, view: BlockView, columns: int, target: Target) -> bool:
    """Bring operands into panels: constants always, others where their columns lie apart.

    Of others with contiguous columns it is a choice, where enough rows use a panel. Returns whether
    there are panels of constants.
    """
    constant, by_fours = False, multiplies_by_fours(view, columns, target)
    order = _in_pairs if multiplies_signed(target) else _in_fours
    sch, buffers = state.sch, [region.source for region in view.node.reads]
    column = view.axes(SPATIAL)[-1].var
    for position, indices in view.reads:
        axes = [at for at, index in enumerate(indices) if index.same_as(column)]
        if len(axes) != 1 or len(indices) < 2:
            continue
        fours = by_fours and str(buffers[position].dtype) == "int8"
        places = order if fours else None
        if _is_made_beforehand(view, buffers[position]):
            _transform(view, position, axes[0], columns, places)
            constant = True
            continue
        free = view.has_constant(buffers[position])
        apart = axes[0] != len(indices) - 1
        if free or apart or fours or _is_worth_packing(state, view, indices, columns, target):
            copy = _pack(sch, view.rv, position, axes[0], columns, places)
            constant |= free
            if free:
                sch.annotate(copy, ON_CONSTANT, True)
            elif fours:
                _pack_by_fours(sch, copy, math.gcd(columns, target.vector_bytes))
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


# The innermost places of a step and a column of a panel.
_Places = Callable[[Any, Any], list[Any]]


def _in_fours(deep: Any, column: Any) -> list[Any]:
    return [deep // STEPS, column, deep % STEPS]


def _in_pairs(deep: Any, column: Any) -> list[Any]:
    """Of four columns a register: two steps of each, and then the other two."""
    pair = STEPS // 2
    return [deep // STEPS, column // 4, deep % STEPS // pair, column % 4, deep % pair]


def _pack(
    sch: Any, block: Any, position: int, axis: int, columns: int, places: _Places | None
) -> Any:
    """Copy an operand into panels of `columns`, and return the copying block.

    [b, .., c, ..] -> [b, c / columns, .., .., c % columns], and by fours
    [b, .., k, c] -> [b, c / columns, .., k / 4, c % columns, k % 4]
    """
    copy = sch.cache_read(block, position, "global")
    _transform(BlockView(sch, block), position, axis, columns, places)
    return copy


def _pack_by_fours(sch: Any, copy: Any, width: int) -> None:
    """Copy four rows at a time, put between each other. width: columns that are read at once."""
    *batch, deep, column = sch.get_loops(copy)
    whole = extent(sch, column) % width == 0
    (four, step), (vectors, lane) = (
        sch.split(loop, [None, size]) for loop, size in ((deep, STEPS), (column, width))
    )
    sch.reorder(*batch, four, vectors, step, lane)
    if not whole:
        partitioned(sch, vectors)
        partitioned(sch, lane)
    interleave(sch, step)
    sch.vectorize(lane)
    parallel(sch, [*batch, four])


def _transform(
    view: BlockView, position: int, axis: int, columns: int, places: _Places | None
) -> None:
    """Let an operand that a stage makes be in panels."""
    batch = _batch_axes(view, position, axis)

    def panels(*indices: Any) -> list[Any]:
        rest = [index for at, index in enumerate(indices) if at not in (axis, *batch)]
        panel, column = indices[axis] // columns, indices[axis] % columns
        before = [*(indices[at] for at in batch), panel]
        if places:
            *rest, deep = rest
            return [*before, *rest, *places(deep, column)]
        return [*before, *rest, column]

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
