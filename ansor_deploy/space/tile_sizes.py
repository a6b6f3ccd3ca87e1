"""Sizes of register tiles: which fill the registers, and what a step of each costs.

The size of a tile comes from the target: W x C / lanes accumulators and the operands in flight
fill the registers, and of the tiles that do, those with the most multiply-adds a load come first
(Goto and van de Geijn, 2008). A size need not divide its extent: the last tile is the rest, and
counts with what it costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

from .._tvm import uses
from ..marks.dot import multiplies_signed, steps_at_once
from ..marks.row_vectors import ROW_LANES
from ..system.host import architecture
from ..target import Target
from .block_view import REDUCE, SPATIAL, BlockView, divisions
from .cores import FAIR, busy, tile_tasks, worth_cores
from .loops import lanes
from .packing import rows_of, sums_pairs, sums_sixteens
from .tiles import divisors

# Registers kept beside the accumulators and one step's vectors of the panel: an element of a row.
SPARE_REGISTERS = 1
# And on x86 where the last vector of a panel is cut short, for each of the others: of registers of
# two widths LLVM uses more, and sends sums to the stack at each step. 8x40 takes 0.84 of 9x40's.
CUT_REGISTERS = 1
# And where no multiply-add reads memory, as on all but x86: an element of four rows at a time, and
# the next step's vectors. With less LLVM sends a third of an A53's tiles to the stack at each step.
LOADED_REGISTERS = 3
# And where a multiply-add takes a lane of a row's vector (`marks/row_vectors.py`), beside those
# vectors, the accumulators and a step's of the panel. A tile without room for them, such as 8x12,
# reads elements, for the search to try: it has more of a tile for more instructions.
BESIDE_ROWS = 2
# And where products are no part of a sum yet, as those of pairs of 16 bits (`marks/dot.py`): one.
PRODUCT_REGISTER = 1
# And where products of 16 bits are added up before they are widened, accumulators: LLVM has those
# of several in hand, and sends what is beyond to the stack at each step. A load counts for a third
# there, beside three instructions, and bytes of a row for two, which a table spreads over lanes.
MOST_SUMS, WIDENED_LOAD, SPREAD_ROW = 8, 1 / 3, 2.0
# And where lanes are of steps (`marks/long_dot.py`): a sum of each of a vector's columns has a
# register, and a load stands beside twelve instructions.
MOST_LONG_SUMS, LONG_LOAD = 4, 1 / 6
# And where the innermost loop of a reduction has a step for each of a few channels, as in the first
# layer of a network, on x86: with more LLVM sends sums to the stack, since it holds the inputs of a
# row of taps as well. As measured with 32 registers: 5x48 takes 0.73 of 8x48's time, 4x64 0.82 to
# 0.96 of 6x64's, and for 24 columns 8x32 0.71 of 12x32's.
FEW_CHANNELS, FEW_CHANNELS_SUMS = 4, 16
# What a vector of a panel costs, which may come from the second cache, beside an element of a row
# from the first. It ranks tiles of 16 registers as measured: 4x24, 6x16, 5x16, 4x16, 8x8.
PANEL_LOAD = 1.9
# Widest tile, in vectors: wider only costs loads of the panel.
MAX_VECTORS = 4
# Tiles offered to the search, the best first, and how much worse than the best the last may be.
OFFERED = 16
WORST = 0.7
# What a tile that does not divide must be better by: the rest is code of its own. Beside so many
# whole tiles of rows that makes no difference.
UNEVEN, MANY = 0.95, 28
# Innermost axes that a tile may span besides the contiguous one.
ROW_AXES = 3
# Groups of channels narrower than this are not worth a vector each.
NARROW_GROUP = 4
# Steps of a reduction that are written out as a whole: a depthwise kernel, a pooling window.
FEW_TAPS = 9
# Registers that their accumulators and inputs get where each channel has its own taps, which stay
# in others. As measured: with 32 registers 9 accumulators are faster than more, with 16 it is 6.
OWN_TAPS_REGISTERS = 11
# And where these are of bytes (`marks/tap_pairs.py`), of which sums take four registers each.
PAIRED_REGISTERS, BYTE = 6, 8


def register_tiles(view: BlockView, target: Target, steps: list[int]) -> list[tuple[int, ...]]:
    """Tile sizes of the result's axes, the most multiply-adds a load first.

    One that leaves cores idle counts with the part of the time in which they are not.
    steps: of all axes, the reducing ones last; what each size must be a multiple of.
    """
    model, cores = _Model.of(view, target, steps), max(1, worth_cores(view, target))
    return list(_ranked(model, cores))


def tiles_within(view: BlockView, target: Target, rows: int) -> list[tuple[int, ...]]:
    """Tile sizes of so many rows of the result, which one core computes.

    Where that is a part of them, a tile divides it.
    """
    model = _Model.of(view, target, [1] * len(view.node.iter_vars))
    *batch, whole, columns = view.spatial
    part = replace(model, extents=(*(1 for _ in batch), rows, columns))
    return list(_ranked(part, 1, 1 if rows == whole else rows))


@lru_cache(maxsize=64)  # a search asks for each of its programs, and scores take the longest of it
def _ranked(model: _Model, cores: int, part: int = 1) -> tuple[tuple[int, ...], ...]:
    """Tile sizes, the best first. part: that is so many rows of several, which tiles divide."""
    scored = []
    for columns in _columns(model):
        limit = max(math.prod(model.steps[:-1]), model.rows(columns))
        for tile in _tiles_of(model, columns, limit):
            if part > 1 and part % tile[-2]:
                continue
            shared = min(FAIR, busy(tile_tasks(model.extents, tile), cores))
            scored.append((model.score(tile) * shared, tile))
    # Of equals the largest: it has the most accumulators to hide latencies behind.
    scored.sort(key=lambda pair: (-round(pair[0], 6), -math.prod(pair[1]), pair[1]))
    return tuple(tile for score, tile in scored if score >= WORST * scored[0][0])[:OFFERED]


@dataclass(frozen=True)
class _Model:
    """What decides how good a tile is.

    extents, steps: of the result's axes. operands: for each, which of these axes its indices
    mention, groups apart. taps: that positions `steps` apart share. registers: at hand. ahead: of
    how many steps registers hold the panel's vectors. sums: the most accumulators. load: what one
    costs beside a multiply-add. each: what an element of a row counts for. with_rows: registers for
    the panel's vectors of one step and a vector of each row; 0 where a multiply-add takes no lane
    of it. uneven: what a tile that does not divide counts for: where channels have their own taps,
    the rest is little code. group: columns of one group of a grouped reduction, or 0. cropped:
    whether the epilogue leaves columns out.
    """

    extents: tuple[int, ...]
    steps: tuple[int, ...]
    operands: tuple[tuple[bool, ...], ...]
    taps: int
    registers: int
    ahead: int
    sums: int
    load: float
    each: float
    with_rows: int
    lanes: int
    uneven: float
    group: int
    cropped: bool

    @classmethod
    def of(cls, view: BlockView, target: Target, steps: list[int]) -> _Model:
        """The model of a block."""
        registers, ahead, uneven = target.vector_registers, 1, UNEVEN
        operands, with_rows = indexing_axes(view), 0
        sums, load, each, bits = registers, 1.0, 1.0, view.bits
        if math.prod(view.reduced) <= FEW_TAPS:
            if sums_pairs(view, target):
                registers, bits = PAIRED_REGISTERS, BYTE
            elif all(column for *_, column in operands):
                registers, uneven = min(registers // 2, OWN_TAPS_REGISTERS), 1.0
            else:  # taps written out want registers for the inputs that they share
                registers = registers // 2 + SPARE_REGISTERS
        elif sums_sixteens(view, target):
            sums, load, each = MOST_LONG_SUMS, LONG_LOAD, 1.0
        elif _adds_up_pairs(view, target) and multiplies_signed(target):
            sums, load, each = MOST_SUMS, WIDENED_LOAD, SPREAD_ROW
        elif _adds_up_pairs(view, target):
            registers -= PRODUCT_REGISTER
        elif architecture(target.triple) != "x86_64":
            if math.prod(steps) == 1 and _is_along_rows(view, operands, target):
                with_rows = registers - BESIDE_ROWS
            spared = SPARE_REGISTERS if with_rows else LOADED_REGISTERS
            registers, ahead = registers - spared, 2
        elif view.reduced[-1] <= FEW_CHANNELS:
            sums = FEW_CHANNELS_SUMS
        extents, width = view.spatial, lanes(target, bits)
        rank = len(extents)
        taps = math.prod(steps[rank:])
        return cls(
            tuple(extents),
            tuple(steps[:rank]),
            tuple(map(tuple, operands)),
            taps,
            registers,
            ahead,
            sums,
            load,
            each,
            with_rows,
            width,
            uneven,
            columns_of_groups(view),
            _is_cropped(view),
        )

    def rows(self, columns: int) -> int:
        """The most rows of a tile of so many columns."""
        vectors = columns // self.width(columns)
        beside = SPARE_REGISTERS + self.ahead * vectors
        if self.ahead == 1 and self.is_cut(columns):  # x86
            beside += CUT_REGISTERS * (vectors - 1)
        return min(self.sums, self.registers - beside) // vectors

    def is_cut(self, columns: int) -> bool:
        """Whether tiles of so many columns end with one whose last vector is cut short."""
        return bool(self.extents[-1] % columns and self.extents[-1] % self.width(columns))

    def width(self, columns: int) -> int:
        """Elements of each vector of so many columns."""
        return math.gcd(columns, self.lanes)

    def score(self, tile: tuple[int, ...]) -> float:
        """Multiply-adds of whole vectors that the result takes, over all that is done for it."""
        cost, width = 0.0, self.width(tile[-1])
        each = PANEL_LOAD / ROW_LANES if self.takes_lanes(tile) else self.each
        for parts in product(*map(parts_of, self.extents, tile)):
            *rows, columns = (size for _, size in parts)
            vectors = math.ceil(columns / width)
            adds = math.prod(rows) * vectors
            cost += math.prod(count for count, _ in parts) * (
                adds + self.load * self._loads(rows, vectors, each)
            )
        enough = [*(MANY * size for size in tile[:-1]), math.inf]
        pairs = zip(self.extents, tile, enough, strict=True)
        even = all(whole % size == 0 or whole >= many for whole, size, many in pairs)
        return math.prod(self.extents) / self.lanes / cost * (1 if even else self.uneven)

    def takes_lanes(self, tile: tuple[int, ...]) -> bool:
        """Whether registers hold a vector of each row along the reduction, four steps of it."""
        rows, vectors = math.prod(tile[:-1]), tile[-1] // self.width(tile[-1])
        return rows * (vectors + 1) + vectors <= self.with_rows

    def _loads(self, rows: list[int], vectors: int, each: float) -> float:
        """Elements, or vectors of the contiguous axis, that a step reads.

        Positions `steps` apart share a tap, and there are `taps` of them; between them lies one
        input. each: cost of an element.
        """
        panel = PANEL_LOAD if not all(column for *_, column in self.operands) else 1.0
        loads = 0.0
        for *used, column in self.operands:
            axes = zip(rows, self.steps, used, strict=False)
            sizes = [size // step + (step > 1) for size, step, wanted in axes if wanted]
            loads += math.prod(sizes) * (panel * vectors * self.taps if column else each)
        return loads


def parts_of(extent: int, size: int) -> list[tuple[int, int]]:
    """The tiles of an axis as (how many, of which size): whole ones, and the rest."""
    parts = [(extent // size, size), (1, extent % size)]
    return [part for part in parts if all(part)]


def _columns(model: _Model) -> list[int]:
    """Sizes of a tile along the contiguous axis: those that divide it, and whole vectors.

    Of tiles that end in two places, as where columns are left out, TVM does not see that they are
    all of one size, and their accumulators would lie in memory.
    """
    extent, lanes, most = model.extents[-1], model.lanes, min(MAX_VECTORS, model.sums // 2)
    even = [
        columns
        for columns in divisors(math.gcd(extent, model.group))
        if columns // model.width(columns) <= most
    ]
    vectors = range(1, min(most, math.ceil(extent / lanes)) + 1)
    if model.group or model.cropped:
        return even
    return even + [count * lanes for count in vectors if extent % (count * lanes)]


def _tiles_of(model: _Model, columns: int, limit: int) -> list[tuple[int, ...]]:
    """Tiles of so many columns, and of at most `limit` rows.

    Along those of the innermost row axes along which some operand is reused; only along the last
    of these, and along that alone, a size need not divide.
    """
    extents, steps = model.extents[:-1], model.steps
    reused = [any(not used[axis] for used in model.operands) for axis in range(len(extents))]
    axes = [axis for axis, ok in enumerate(reused) if ok and extents[axis] > 1][-ROW_AXES:]
    found: list[tuple[int, ...]] = [()]
    for axis, (whole, step) in enumerate(zip(extents, steps, strict=False)):
        wide = axis in axes or step > 1
        sizes = [size for size in divisors(whole) if size % step == 0] if wide else [1]
        found = [(*one, size) for one in found for size in sizes if math.prod(one) * size <= limit]
    if axes and math.prod(steps) == 1:
        *_, last = axes
        sizes = [size for size in range(2, min(limit + 1, extents[last])) if extents[last] % size]
        found += [(*[1] * last, size, *[1] * (len(extents) - last - 1)) for size in sizes]
    return [(*rows, columns) for rows in found]


def indexing_axes(view: BlockView) -> list[list[bool]]:
    """For each operand, which of the result's axes its indices mention, groups apart."""
    spatial = [axis.var for axis in view.axes(SPATIAL)]
    found = []
    for _, indices in view.operands:
        used = [any(uses(index, var) for index in indices) for var in spatial]
        # An index that moves with every step of the contiguous axis, not once a group of them.
        stepping = any(uses(i, spatial[-1]) and not _divided(i, spatial[-1]) for i in indices)
        found.append([*used[:-1], stepping])
    return found


def takes_lanes(view: BlockView, tile: tuple[int, ...], target: Target) -> bool:
    """Whether multiply-adds of a tile take lanes of vectors along its rows."""
    return _Model.of(view, target, [1] * len(view.node.iter_vars)).takes_lanes(tile)


def _is_along_rows(view: BlockView, operands: list[list[bool]], target: Target) -> bool:
    """Whether a lane of a vector along each row is what a multiply-add takes for all lanes."""
    axis = view.axes(REDUCE)[-1]
    pairs = zip(view.operands, operands, strict=True)
    rows = [indices[-1] for (_, indices), (*_, column) in pairs if not column and indices]
    along = bool(rows) and all(uses(index, axis.var) for index in rows)
    whole = int(axis.dom.extent) % ROW_LANES == 0 and view.bits == 32
    return architecture(target.triple) == "aarch64" and along and whole


def _adds_up_pairs(view: BlockView, target: Target) -> bool:
    """Whether pairs of its products are added up before they are to what was there."""
    types, rows = {str(buffer.dtype) for buffer, _ in view.operands}, rows_of(view, target)
    paired = rows in ("int8", "int16") and rows in types and types <= {rows, "int8"}
    return paired and steps_at_once(target, lanes(target), rows) > 0


def batch_axes(view: BlockView) -> list[int]:
    """The row axes of the result that have panels of their own at each step, where others share."""
    spatial, reduced = ([one.var for one in view.axes(kind)] for kind in (SPATIAL, REDUCE))
    found = []
    for (_, indices), used in zip(view.operands, indexing_axes(view), strict=True):
        apart = [index for index in indices if not any(uses(index, var) for var in reduced)]
        own = [at for at, var in enumerate(spatial[:-1]) if any(uses(i, var) for i in apart)]
        found += [own] if used[-1] else []
    own = min(found, key=len, default=[])
    shared = [size for at, size in enumerate(view.spatial[:-1]) if at not in own and size > 1]
    return own if shared else []


def _divided(expr: Any, var: Any) -> list[int]:
    """The constants by which terms with the variable are divided."""
    return [constant for term, constant in divisions(expr, "FloorDiv") if uses(term, var)]


def _is_cropped(view: BlockView) -> bool:
    """Whether several rows of columns go to one consumer of fewer columns."""
    rows, columns = math.prod(view.spatial[:-1]), view.spatial[-1]
    shapes = [one.spatial for one in view.consumers]
    return rows > 1 and [shape[-1] < columns for shape in shapes] == [True]


def columns_of_groups(view: BlockView) -> int:
    """Columns of one group of a grouped reduction: a vector across two would read apart; or 0."""
    column = view.axes(SPATIAL)[-1].var
    sizes = [s for _, indices in view.operands for i in indices for s in _divided(i, column)]
    return math.gcd(*[size for size in sizes if size >= NARROW_GROUP])
