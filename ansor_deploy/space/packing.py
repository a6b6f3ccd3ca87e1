"""Packing: operands of a micro-kernel as panels, which it reads from one end to the other."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from .._tvm import tirx, tvm, uses
from ..marks.dot import PAIR, STEPS, multiplied_rows, multiplies_signed, steps_at_once
from ..marks.interleaved import interleave
from ..marks.long_dot import LONG_STEPS
from ..marks.partition import partitioned
from ..marks.widened_panels import HALVES
from ..target import Target
from .block_view import KEPT, REDUCE, SPATIAL, BlockView
from .loops import extent, lanes, parallel, parallel_map
from .state import State

# Rows that use a panel: from here copying it may pay, and from here it mostly does.
PACKING_PAYS = 64
PACKING_WINS = 128
# Of a second cache, about: lines that are so much of it apart share a set.
WAYS = 16
# Columns whose taps are summed up by pairs in one vector of bytes.
WIDE = 16
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


def multiplied_at_once(view: BlockView, columns: int, target: Target) -> int:
    """How many steps a processor best sums up at once, with so many columns in a panel; 0: none.

    The operands are a row's, beside each other, or of as many lines of a column, and signed bytes.
    """
    deep, factors = view.axes(REDUCE)[-1], rows_and_weights(view, target)
    steps = steps_at_once(target, math.gcd(columns, lanes(target)), rows_of(view, target))
    if not factors or not steps or int(deep.dom.extent) % steps:
        return 0
    row, weight = ([i for i in indices if uses(i, deep.var)] for indices in factors)
    last = factors[0][-1]
    beside = len(row) == 1 and row[0].same_as(last) and _is_from(last, deep.var, 1)
    whole = len(weight) == 1 and _is_from(weight[0], deep.var, steps)
    of_lines = has_own_taps(view) and rows_of(view, target) == "uint8"
    return steps if whole and (of_lines or (beside and not has_own_taps(view))) else 0


def sums_sixteens(view: BlockView, target: Target) -> bool:
    """Whether a processor sums up sixteen steps of signed bytes at once, of which all are whole."""
    whole = view.reduced[-1] % LONG_STEPS == 0
    return whole and multiplies_signed(target) and bool(rows_and_weights(view, target))


def rows_of(view: BlockView, target: Target) -> str:
    """The type of rows that a block sums up products of at once; empty if of none.

    x86 multiplies pairs of 16 bits, even where it does bytes as they are.
    """
    kinds, best = [str(buffer.dtype) for buffer, _ in view.operands], multiplied_rows(target)
    return "int16" if best == "uint8" and sorted(kinds) == ["int16", "int8"] else best


def rows_and_weights(view: BlockView, target: Target) -> list[list[Any]]:
    """The indices of rows and of weights, of types that the processor multiplies; else none.

    Of signed rows weights are constants: only these are known to have no -128.
    """
    kinds, rows = [str(buffer.dtype) for buffer, _ in view.operands], rows_of(view, target)
    weights = [kind == "int8" for kind in kinds]
    if rows == "int8" and all(weights):
        weights = [view.has_constant(buffer) for buffer, _ in view.operands]
    elif kinds == ["int16", "int16"] and rows == "int16":
        column = view.axes(SPATIAL)[-1].var
        weights = [any(uses(i, column) for i in indices) for _, indices in view.operands]
    elif rows == "int8" or rows not in kinds:
        return []
    if sorted(weights) != [False, True]:
        return []
    return [view.operands[weights.index(one)][1] for one in (False, True)]


def sums_pairs(view: BlockView, target: Target) -> bool:
    """Whether a processor sums up two taps of signed bytes at once, of each column its own."""
    if not multiplies_signed(target) or view.spatial[-1] % WIDE or len(view.operands) != 2:
        return False
    column, reduced = view.axes(SPATIAL)[-1].var, [axis.var for axis in view.axes(REDUCE)]
    for buffer, indices in view.operands:
        moves = indices and uses(indices[-1], column)
        if str(buffer.dtype) != "int8" or not moves or any(uses(indices[-1], v) for v in reduced):
            return False
    weights = [b for b, _ in view.operands if view.has_constant(b) or _is_made_beforehand(view, b)]
    return len(weights) == 1


def has_own_taps(view: BlockView) -> bool:
    """Whether each column of a result is made of one column of each operand."""
    column = view.axes(SPATIAL)[-1].var
    return all(indices and indices[-1].same_as(column) for _, indices in view.operands)


def _is_from(index: Any, var: Any, multiple: int) -> bool:
    """Whether an index is a variable, beside a multiple that does not depend on it."""
    beside = tvm.sym.Analyzer().simplify(index - var)
    rest = tvm.sym.Analyzer().simplify(tirx.floormod(beside, multiple))
    return not uses(beside, var) and isinstance(rest, tirx.IntImm) and int(rest.value) == 0


def packed_steps(view: BlockView) -> int:
    """The steps by which an operand of a reduction has been packed; 0 where none has been."""
    deep, column = view.axes(REDUCE)[-1].var, view.axes(SPATIAL)[-1].var
    kinds = [str(buffer.dtype) for buffer, _ in view.operands]
    wide, signed = "int16" in kinds, kinds == ["int8", "int8"]
    for buffer, indices in view.operands:
        if str(buffer.dtype) not in ("int8", "int16") or len(indices) < 3:
            continue
        steps = int(buffer.shape[-1])
        if not (uses(indices[-1], deep) and uses(indices[-2], column)):
            continue
        if steps == PAIR and uses(indices[-3], deep):
            return PAIR if wide else STEPS
        if (steps == STEPS and not wide) or (steps == LONG_STEPS and signed):
            return steps
    return 0


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
    constant, steps = False, multiplied_at_once(view, columns, target)
    order = _order(view, steps, target)
    sch, buffers = state.sch, [region.source for region in view.node.reads]
    column = view.axes(SPATIAL)[-1].var
    for position, indices in view.reads:
        axes = [at for at, index in enumerate(indices) if index.same_as(column)]
        if len(axes) != 1 or len(indices) < 2:
            continue
        by_steps = steps and str(buffers[position].dtype) in ("int8", "int16")
        places = order if by_steps else None
        if _is_made_beforehand(view, buffers[position]):
            _transform(view, position, axes[0], columns, places)
            constant = True
            continue
        whole = view.spatial[-1] % columns == 0
        if by_steps and whole and _is_made_for(view, buffers[position]):
            _transform(view, position, axes[0], columns, places)
            continue
        free = view.has_constant(buffers[position])
        apart = axes[0] != len(indices) - 1
        if free or apart or by_steps or _is_worth_packing(state, view, indices, columns, target):
            copy = _pack(sch, view.rv, position, axes[0], columns, places)
            constant |= free
            if free:
                sch.annotate(copy, ON_CONSTANT, True)
            elif by_steps and apart:
                _pack_words(sch, copy, steps)
            elif by_steps:
                _pack_by_steps(sch, copy, steps, math.gcd(columns, target.vector_bytes))
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


def _is_made_for(view: BlockView, buffer: Any) -> bool:
    """Whether a stage that a rewriting made computes the operand: it can as well write panels."""
    made = [one for one in view.producers if one.node.writes[0].source.same_as(buffer)]
    return any(KEPT in (one.node.annotations or {}) for one in made)


# The innermost places of a step and a column of a panel.
_Places = Callable[[Any, Any], list[Any]]


def _order(view: BlockView, steps: int, target: Target) -> _Places:
    """How a processor wants weights that are multiplied, so many steps at once."""
    if not multiplies_signed(target):
        return partial(_in_steps, steps)
    return partial(_in_steps, LONG_STEPS) if sums_sixteens(view, target) else _in_two_pairs


def _in_steps(steps: int, deep: Any, column: Any) -> list[Any]:
    return [deep // steps, column, deep % steps]


def _in_two_pairs(deep: Any, column: Any) -> list[Any]:
    """Of four columns a register: two steps of each, and then the other two."""
    return [deep // STEPS, column // 4, deep % STEPS // PAIR, column % 4, deep % PAIR]


def _pack(
    sch: Any, block: Any, position: int, axis: int, columns: int, places: _Places | None
) -> Any:
    """Copy an operand into panels of `columns`, and return the copying block.

    [b, .., c, ..] -> [b, c / columns, .., .., c % columns], and by four steps
    [b, .., k, c] -> [b, c / columns, .., k / 4, c % columns, k % 4]
    """
    copy = sch.cache_read(block, position, "global")
    _transform(BlockView(sch, block), position, axis, columns, places)
    return copy


def _pack_by_steps(sch: Any, copy: Any, steps: int, width: int) -> None:
    """Copy some rows at a time, put between each other. width: columns that are read at once."""
    *batch, deep, column = sch.get_loops(copy)
    whole = extent(sch, column) % width == 0
    (some, step), (vectors, lane) = (
        sch.split(loop, [None, size]) for loop, size in ((deep, steps), (column, width))
    )
    sch.reorder(*batch, some, vectors, step, lane)
    if not whole:
        partitioned(sch, vectors)
        partitioned(sch, lane)
    interleave(sch, step)
    sch.vectorize(lane)
    parallel(sch, [*batch, some])


def _pack_words(sch: Any, copy: Any, steps: int) -> None:
    """Copy the steps of each column, which lie beside each other, as one word."""
    *batch, column, deep = sch.get_loops(copy)
    some, step = sch.split(deep, [None, steps])
    sch.reorder(*batch, some, column, step)
    sch.vectorize(step)
    parallel(sch, [*batch, some])


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
