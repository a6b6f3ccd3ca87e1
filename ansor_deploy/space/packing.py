"""Packing: a micro-kernel's operands are copied into panels, which it reads from end to end."""

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

# Copying a panel may pay if this many rows use it.
PACKING_PAYS = 64
# Copying a panel mostly pays if this many rows use it.
PACKING_WINS = 128
# About the associativity of a second cache: lines that are 1/WAYS of its size apart share a set.
WAYS = 16
# Columns of one vector of bytes whose taps are summed up by pairs.
WIDE = 16
# A builder takes a stage with this annotation out of the program and runs it on the constant.
ON_CONSTANT = "meta_schedule.layout_rewrite_preproc"


def is_packing(sch: Any, block: Any) -> bool:
    """Whether a block is a stage that the builder takes out of the program."""
    return ON_CONSTANT in (sch.get(block).annotations or {})


def panel_elements(view: BlockView, columns: int) -> int:
    """Elements of a packed panel with this many columns."""
    return math.prod(view.reduced) * columns


def panel_bytes(view: BlockView, columns: int) -> int:
    """Bytes of a packed panel with this many columns."""
    return panel_elements(view, columns) * _panel_item(view)


def _panel_item(view: BlockView) -> int:
    """Bytes of an element of the operand with the columns; those of a float32 where none has them.

    A shorter operand that becomes float32, mostly once for many tiles (`widening.py`), counts as
    float32.
    """
    column = view.axes(SPATIAL)[-1].var
    having = [b for b, indices in view.operands if any(uses(i, column) for i in indices)]
    short = made_float32(view)
    return min((4 if b in short else b.dtype.itemsize for b in having), default=4)


def made_float32(view: BlockView) -> list[Any]:
    """The operands of a float32 product that have fewer than 32 bits."""
    if any(str(region.source.dtype) != "float32" for region in view.node.writes):
        return []
    return [b for b, _ in view.operands if str(b.dtype) in (*HALVES, "int8")]


def made_words(view: BlockView, target: Target) -> list[Any]:
    """The packed weights of signed bytes that are multiplied by rows of 16 bits, in whole vectors.

    Where columns are left over, the instruction reads behind them (`marks/dot.py`).
    """
    kinds = sorted(str(buffer.dtype) for buffer, _ in view.operands)
    whole = view.spatial[-1] % lanes(target) == 0 and packed_steps(view) == PAIR
    if kinds != ["int16", "int8"] or rows_of(view, target) != "int16" or not whole:
        return []
    return [buffer for buffer, _ in view.operands if str(buffer.dtype) == "int8"]


def in_words(view: BlockView) -> list[Any]:
    """The operands of a float32 product that hold several weights in a word."""
    if any(str(region.source.dtype) != "float32" for region in view.node.writes):
        return []
    return [b for b, _ in view.operands if str(b.dtype) == "int32"]


def multiplied_at_once(view: BlockView, columns: int, target: Target) -> int:
    """How many steps an instruction should sum up, with this many columns in a panel; 0 for none.

    Rows must have the steps side by side, or, in a depthwise convolution of unsigned bytes, in as
    many lines of a column. The weights are signed bytes.
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
    """Whether a processor sums sixteen steps of signed bytes at once, and they divide the sum."""
    whole = view.reduced[-1] % LONG_STEPS == 0
    return whole and multiplies_signed(target) and bool(rows_and_weights(view, target))


def rows_of(view: BlockView, target: Target) -> str:
    """The type of rows whose products an instruction sums up for a block; "" for none.

    x86 multiplies 16-bit pairs as well, even where it multiplies bytes directly.
    """
    kinds, best = [str(buffer.dtype) for buffer, _ in view.operands], multiplied_rows(target)
    return "int16" if best == "uint8" and sorted(kinds) == ["int16", "int8"] else best


def rows_and_weights(view: BlockView, target: Target) -> list[list[Any]]:
    """The indices of rows and of weights, if the processor multiplies their types; else [].

    With signed rows, weights must be constants: only these are known to have no -128.
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
    """Whether a processor sums up two taps of signed bytes at once, in a depthwise convolution."""
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
    """Whether each column of the result reads only that column of each operand."""
    column = view.axes(SPATIAL)[-1].var
    return all(indices and indices[-1].same_as(column) for _, indices in view.operands)


def _is_from(index: Any, var: Any, multiple: int) -> bool:
    """Whether an index is a variable plus a multiple of `multiple` without that variable."""
    beside = tvm.sym.Analyzer().simplify(index - var)
    rest = tvm.sym.Analyzer().simplify(tirx.floormod(beside, multiple))
    return not uses(beside, var) and isinstance(rest, tirx.IntImm) and int(rest.value) == 0


def packed_steps(view: BlockView) -> int:
    """How many steps an operand of a reduction has been packed by; 0 where none has been."""
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
    """Bytes of the second cache that a panel takes, which may be more than its own size.

    The rows of an unpacked panel are as far apart as those of the whole operand. If that distance
    is a multiple of a power of two, they share a part of the cache's sets and cannot use the rest.
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
    """Copy operands into panels: constants always, others where their columns are not contiguous.

    For others with contiguous columns it is a choice, if enough rows use a panel. Returns whether
    any panel is of constants.
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
                # The copy gathers single elements anyway: plain loops do that best.
                sch.parallel(sch.fuse(*sch.get_loops(copy)[:-1]))
            else:
                parallel_map(sch, copy, target)
            state.finish(copy)
    return constant


def _is_made_beforehand(view: BlockView, buffer: Any) -> bool:
    """Whether a stage on a constant computes the operand; that stage can write panels itself."""
    return any(
        is_packing(view.sch, producer.rv) and producer.node.writes[0].source.same_as(buffer)
        for producer in view.producers
    )


def _is_made_for(view: BlockView, buffer: Any) -> bool:
    """Whether a stage of a rewriting computes the operand; that stage can write panels itself."""
    made = [one for one in view.producers if one.node.writes[0].source.same_as(buffer)]
    return any(KEPT in (one.node.annotations or {}) for one in made)


# Gives the innermost indices of a panel for a step and a column.
_Places = Callable[[Any, Any], list[Any]]


def _order(view: BlockView, steps: int, target: Target) -> _Places:
    """The order of weights that the processor's instructions for this many steps need."""
    if not multiplies_signed(target):
        return partial(_in_steps, steps)
    return partial(_in_steps, LONG_STEPS) if sums_sixteens(view, target) else _in_two_pairs


def _in_steps(steps: int, deep: Any, column: Any) -> list[Any]:
    return [deep // steps, column, deep % steps]


def _in_two_pairs(deep: Any, column: Any) -> list[Any]:
    """Four columns a register: two steps of each column, then the other two steps of each."""
    return [deep // STEPS, column // 4, deep % STEPS // PAIR, column % 4, deep % PAIR]


def _pack(
    sch: Any, block: Any, position: int, axis: int, columns: int, places: _Places | None
) -> Any:
    """Copy an operand into panels of `columns`. Returns the copying block.

    [b, .., c, ..] -> [b, c / columns, .., .., c % columns], and with four steps at once
    [b, .., k, c] -> [b, c / columns, .., k / 4, c % columns, k % 4]
    """
    copy = sch.cache_read(block, position, "global")
    _transform(BlockView(sch, block), position, axis, columns, places)
    return copy


def _pack_by_steps(sch: Any, copy: Any, steps: int, width: int) -> None:
    """Copy `steps` rows at a time, interleaved. width: how many columns are read at once."""
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
    """Copy the steps of each column, which are contiguous, as one word."""
    *batch, column, deep = sch.get_loops(copy)
    some, step = sch.split(deep, [None, steps])
    sch.reorder(*batch, some, column, step)
    sch.vectorize(step)
    parallel(sch, [*batch, some])


def _transform(
    view: BlockView, position: int, axis: int, columns: int, places: _Places | None
) -> None:
    """Let the stage that computes an operand write it in panels."""
    batch = _batch_axes(view, position, axis)

    def panels(*indices: Any) -> list[Any]:
        rest = [index for at, index in enumerate(indices) if at not in (axis, *batch)]
        panel, column = indices[axis] // columns, indices[axis] % columns
        before = [*(indices[at] for at in batch), panel]
        if places:
            *rest, deep = rest
            return [*before, *rest, *places(deep, column)]
        return [*before, *rest, column]

    # Elements behind the last column are never used, but they are part of the library.
    zero = tirx.const(0, view.node.reads[position].source.dtype)
    surplus = zero if view.spatial[-1] % columns else None
    view.sch.transform_layout(view.rv, ("read", position), panels, pad_value=surplus)


def _batch_axes(view: BlockView, position: int, axis: int) -> list[int]:
    """The axes of an operand, except that of the columns, that no reducing axis moves along."""
    reduced = [one.var for one in view.axes(REDUCE)]
    indices = next(indices for at, indices in view.reads if at == position)
    moving = [at for at, index in enumerate(indices) if not isinstance(index, tirx.IntImm)]
    return [
        at for at in moving if at != axis and not any(uses(indices[at], var) for var in reduced)
    ]


def _is_worth_packing(
    state: State, view: BlockView, indices: list[Any], columns: int, target: Target
) -> bool:
    """Choose whether to copy a panel. Only measuring shows: the copy may take a tenth of the time.

    The guess copies a panel that is larger than the first cache and used by many rows.
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
