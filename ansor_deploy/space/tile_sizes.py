"""Sizes of register tiles: which ones fit the registers, and what a step of each costs.

The registers of the target hold W x C / lanes accumulators and the operands of a step. Of the tiles
that fit, those with the most multiply-adds for each load come first (Goto and van de Geijn, 2008).
A size need not divide its extent: the last tile is then smaller, and its cost is estimated too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

from .._tvm import tvm, uses
from ..marks.dot import multiplies_signed, steps_at_once
from ..marks.row_vectors import ROW_LANES
from ..system.host import architecture
from ..target import Target
from .block_view import REDUCE, SPATIAL, BlockView, divisions
from .cores import FAIR, busy, tile_tasks, worth_cores
from .loops import BYTE, lanes
from .packing import rows_of, sums_pairs, sums_sixteens
from .tiles import divisors

# Registers kept free for an element of a row, beside accumulators and a step's vectors of a panel.
SPARE_REGISTERS = 1
# More free registers on x86 where the last vector of a panel is cut short, for each other vector:
# with two widths of vectors LLVM uses more registers and spills sums in each step. 8x40 takes 0.84
# of the time of 9x40.
CUT_REGISTERS = 1
# Free registers where multiply-adds cannot read memory, as on all processors but x86: for elements
# of four rows at a time and the next step's vectors. With fewer, LLVM spills a third of an A53's
# tiles in each step.
LOADED_REGISTERS = 3
# Free registers where a multiply-add takes a lane of a row's vector (`marks/row_vectors.py`),
# beside accumulators and the vectors of rows and of a step of the panel. A tile without room for
# that, such as 8x12, reads single elements: it is larger, for more instructions. The search may
# try it.
BESIDE_ROWS = 2
# A register for a product that is not yet part of a sum, as with 16-bit pairs (`marks/dot.py`).
PRODUCT_REGISTER = 1
# Most accumulators where 16-bit products are added up before they are widened: LLVM keeps several
# of these in registers, and with more accumulators it spills in each step.
MOST_SUMS = 8
# Cost of a load there, in multiply-adds of three instructions each.
WIDENED_LOAD = 1 / 3
# Cost of a row's bytes there, in loads: a table look-up spreads them over the lanes.
SPREAD_ROW = 2.0
# Most accumulators where lanes hold steps (`marks/long_dot.py`): each column has its own register.
MOST_LONG_SUMS = 4
# Cost of a load there, whose multiply-add takes twelve instructions.
LONG_LOAD = 1 / 6
# A reduction whose innermost loop has at most this many steps is over few channels, as in the first
# layer of a network.
FEW_CHANNELS = 4
# Most accumulators of such a reduction on x86. LLVM keeps the inputs of a row of taps in registers
# too, and spills sums if there are more. Measured with 32 registers: 5x48 takes 0.73 of the time of
# 8x48, 4x64 takes 0.82 to 0.96 of 6x64, and with 24 columns 8x32 takes 0.71 of 12x32.
FEW_CHANNELS_SUMS = 16
# Cost of a vector of a panel, which may come from the second cache; an element of a row, from the
# first cache, costs 1. This ranks tiles of 16 registers as measured: 4x24, 6x16, 5x16, 4x16, 8x8.
PANEL_LOAD = 1.9
# Widest tile, in vectors: a wider one only loads more of the panel.
MAX_VECTORS = 4
# How many tiles are offered to the search, the best first.
OFFERED = 16
# The last tile offered has at least this part of the best one's score.
WORST = 0.7
# A tile that does not divide its extents counts this much, since the rest is separate code.
UNEVEN = 0.95
# A tile counts this much if there are too few panels for the cores: they then share the tiles of a
# panel, and none fetches the next panel ahead. For 7x7 pixels with 1152 or 1280 channels and 320
# columns on AVX-512, 14x32 (ten panels) takes 0.8 to 0.89 of the time of 9x48 (seven panels).
UNFETCHED = 0.95
# That matters where panels have more than this many times the elements of the rows.
LARGE_PANELS = 4
# With at least this many whole tiles along an axis, the rest makes no difference.
MANY = 28
# How many of the innermost axes a tile may span besides the contiguous one.
ROW_AXES = 3
# Groups with fewer channels than this are not worth a vector each.
NARROW_GROUP = 4
# A reduction with at most this many steps is unrolled: a depthwise kernel, a pooling window.
FEW_TAPS = 9
# Registers for accumulators and inputs of a depthwise convolution; its taps stay in others.
# Measured: with 32 registers 9 accumulators are faster than more, with 16 registers 6 are.
OWN_TAPS_REGISTERS = 11
# The same for bytes (`marks/tap_pairs.py`): each sum takes four registers.
PAIRED_REGISTERS = 6


def register_tiles(view: BlockView, target: Target, steps: list[int]) -> list[tuple[int, ...]]:
    """Tile sizes of the result's axes, the most multiply-adds a load first.

    The score of a tile that leaves cores idle is multiplied by the part of the time in which they
    are busy. steps: for all axes, the reducing ones last, what each size must be a multiple of.
    """
    model, cores = _Model.of(view, target, steps), max(1, worth_cores(view, target))
    return list(_ranked(model, cores))


def tiles_within(view: BlockView, target: Target, rows: int) -> list[tuple[int, ...]]:
    """Tile sizes for a number of rows of the result that one core computes.

    A tile divides this number of rows, unless it is all rows.
    """
    model = _Model.of(view, target, [1] * len(view.node.iter_vars))
    *batch, whole, columns = view.spatial
    part = replace(model, extents=(*(1 for _ in batch), rows, columns))
    return list(_ranked(part, 1, 1 if rows == whole else rows))


@lru_cache(maxsize=64)  # a search asks once for each program, and scoring is the slowest part of it
def _ranked(model: _Model, cores: int, part: int = 1) -> tuple[tuple[int, ...], ...]:
    """Tile sizes, the best first. part: the rows of a part that tiles must divide; 1 without."""
    scored = []
    for columns in _columns(model):
        limit = max(math.prod(model.steps[:-1]), model.rows(columns))
        for tile in _tiles_of(model, columns, limit):
            if part > 1 and part % tile[-2]:
                continue
            shared = min(FAIR, busy(tile_tasks(model.extents, tile), cores))
            fetched = UNFETCHED if _is_unfetched(model, tile, cores) else 1
            scored.append((model.score(tile) * shared * fetched, tile))
    # Of equal scores the largest tile: its many accumulators hide latencies best.
    scored.sort(key=lambda pair: (-round(pair[0], 6), -math.prod(pair[1]), pair[1]))
    return tuple(tile for score, tile in scored if score >= WORST * scored[0][0])[:OFFERED]


def _is_unfetched(model: _Model, tile: tuple[int, ...], cores: int) -> bool:
    """Whether panels far larger than all rows are too few, or too uneven, to be fetched ahead."""
    *rows, columns = model.extents
    several = math.prod(tile[:-1]) < math.prod(rows) < columns / LARGE_PANELS
    panels = several and not all(column for *_, column in model.operands)
    return panels and columns < FAIR * cores * tile[-1] * math.ceil(columns / tile[-1] / cores)


@dataclass(frozen=True)
class _Model:
    """Everything that decides how good a tile is.

    extents: those of the result's axes. steps: a tile's size along each is a multiple of these.
    operands: for each operand, which of these axes its indices use, not counting the division into
    groups. taps: how many taps positions `steps` apart share. registers: for accumulators and
    operands. ahead: for how many steps registers hold the panel's vectors. sums: the most
    accumulators. load: the cost of a load, in multiply-adds. each: the cost of an element of a row,
    in loads. with_rows: registers for accumulators, a vector of each row and a step of the panel; 0
    where multiply-adds take no lanes of rows. lanes: of a vector. uneven: the factor for a tile
    that does not divide; 1 for depthwise convolutions, where the rest is little code. group:
    columns of a group in a grouped reduction, or 0. cropped: whether the epilogue drops columns.
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
            else:  # unrolled taps need registers for the inputs that they share
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
        """The most rows of a tile with this many columns."""
        vectors = columns // self.width(columns)
        beside = SPARE_REGISTERS + self.ahead * vectors
        if self.ahead == 1 and self.is_cut(columns):  # x86
            beside += CUT_REGISTERS * (vectors - 1)
        return min(self.sums, self.registers - beside) // vectors

    def is_cut(self, columns: int) -> bool:
        """Whether the last of the tiles with this many columns ends in a partial vector."""
        return bool(self.extents[-1] % columns and self.extents[-1] % self.width(columns))

    def width(self, columns: int) -> int:
        """Elements of each vector in a tile with this many columns."""
        return math.gcd(columns, self.lanes)

    def score(self, tile: tuple[int, ...]) -> float:
        """The result's multiply-adds, in whole vectors, divided by the cost of all tiles."""
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
        """Whether registers hold a vector of each row, with four steps of the reduction."""
        rows, vectors = math.prod(tile[:-1]), tile[-1] // self.width(tile[-1])
        return rows * (vectors + 1) + vectors <= self.with_rows

    def _loads(self, rows: list[int], vectors: int, each: float) -> float:
        """The cost of the loads of a step, of elements and of vectors of the contiguous axis.

        Positions `steps` apart share each of the `taps` taps; between two of them lies one input.
        each: the cost of an element.
        """
        panel = PANEL_LOAD if not all(column for *_, column in self.operands) else 1.0
        loads = 0.0
        for *used, column in self.operands:
            axes = zip(rows, self.steps, used, strict=False)
            sizes = [size // step + (step > 1) for size, step, wanted in axes if wanted]
            loads += math.prod(sizes) * (panel * vectors * self.taps if column else each)
        return loads


def parts_of(extent: int, size: int) -> list[tuple[int, int]]:
    """The tiles of an axis as (number, size): the whole ones, and the rest."""
    parts = [(extent // size, size), (1, extent % size)]
    return [part for part in parts if all(part)]


def _columns(model: _Model) -> list[int]:
    """Sizes of a tile along the contiguous axis: divisors and whole vectors.

    With groups or dropped columns, only divisors: where a tile may end at two places, TVM does not
    see that all tiles have one size, and puts accumulators into memory.
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
    """Tiles with this many columns and at most `limit` rows.

    A tile spans the innermost row axes along which an operand is reused. A size need not divide
    along the last of these, if the tile spans no other axis.
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
    """For each operand, which of the result's axes its indices use, not counting group numbers."""
    spatial = [axis.var for axis in view.axes(SPATIAL)]
    found = []
    for _, indices in view.operands:
        used = [any(uses(index, var) for index in indices) for var in spatial]
        # Whether an index moves with every step of the contiguous axis, not once per group.
        stepping = any(uses(i, spatial[-1]) and not _divided(i, spatial[-1]) for i in indices)
        found.append([*used[:-1], stepping])
    return found


def takes_lanes(view: BlockView, tile: tuple[int, ...], target: Target) -> bool:
    """Whether multiply-adds of a tile take lanes of vectors along its rows."""
    return _Model.of(view, target, [1] * len(view.node.iter_vars)).takes_lanes(tile)


def _is_along_rows(view: BlockView, operands: list[list[bool]], target: Target) -> bool:
    """Whether multiply-adds can broadcast a lane of a vector that lies along a row (AArch64)."""
    axis = view.axes(REDUCE)[-1]
    pairs = zip(view.operands, operands, strict=True)
    rows = [indices[-1] for (_, indices), (*_, column) in pairs if not column and indices]
    along = bool(rows) and all(uses(index, axis.var) for index in rows)
    whole = int(axis.dom.extent) % ROW_LANES == 0 and view.bits == 32
    return architecture(target.triple) == "aarch64" and along and whole


def _adds_up_pairs(view: BlockView, target: Target) -> bool:
    """Whether pairs of products are added to each other before they are added to a sum."""
    types, rows = {str(buffer.dtype) for buffer, _ in view.operands}, rows_of(view, target)
    paired = rows in ("int8", "int16") and rows in types and types <= {rows, "int8"}
    return paired and steps_at_once(target, lanes(target), rows) > 0


def batch_axes(view: BlockView) -> list[int]:
    """The row axes along which each position has its own panels, if others share theirs."""
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
    """Whether the only consumer has fewer columns than the reduction, which has several rows."""
    rows, columns = math.prod(view.spatial[:-1]), view.spatial[-1]
    shapes = [one.spatial for one in view.consumers]
    return rows > 1 and [shape[-1] < columns for shape in shapes] == [True]


def columns_of_groups(view: BlockView) -> int:
    """Columns of a group in a grouped reduction, which no vector should leave; 0 without groups."""
    column, known = view.axes(SPATIAL)[-1].var, tvm.sym.Analyzer()
    for axis in view.node.iter_vars:
        known.bind(axis.var, axis.dom)
    grouped = [i for _, indices in view.operands for i in indices if _divided(i, column)]
    sizes = [size for i in grouped for size in _divided(known.simplify(i), column)]
    return math.gcd(*[size for size in sizes if size >= NARROW_GROUP])
