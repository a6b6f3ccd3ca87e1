"""Strip tile: a micro-kernel over strips of rows; each strip is padded right before it is read.

for h, w, c: p[h, w, c] = pad(x)
for h, w, c: for r, s: out[h, w, c] += p[h + r, w + s, c] * k[r, s, c]
for h, w, c: y[h, w, c] = epilogue(out[h, w, c])
-->
parallel h / H, c / C:
    for H + r, w + s, C: p[h, w, C] = pad(x)
    for H, w / W:
        for W, C: acc[W, C] = 0
        for r: for s, W (unrolled), C (vectors): acc[W, C] += p[h + r, w + s, C] * k[r, s, C]
        for W (unrolled), C (vectors): y[h, w, C] = epilogue(acc[W, C])

An input that is padded as a whole goes to memory and back. Padding at each tap costs a condition
per tap. A padded strip stays in the cache.
"""

import math
from dataclasses import dataclass

from ansor_deploy.space import (
    FEW_TAPS,
    ROW_LANES,
    SPATIAL,
    Apply,
    BlockView,
    Pass,
    Window,
    collect,
    columns_apart,
    cut_columns,
    divisions,
    divisors,
    extent,
    factor,
    first_that_fits,
    groups_of_steps,
    inline_producers,
    is_marked,
    is_mostly_padding,
    keeps_busy,
    lanes,
    matrix_sizes,
    pack_operands,
    panel_bytes,
    parallel,
    partitioned,
    reading_vectors,
    register_tiles,
    split_tiles,
    sums_matrices,
    sums_pairs,
    takes_lanes,
    tirx,
    tvm,
    uses,
    vectorized,
    widen_once,
    write_out_tile,
    written_out,
)

NAME = "strip-tile"
KINDS = ("llvm",)

# Strips pay up to this many multiply-adds with each element of the padded input.
FEW_USES = 512
# Strips pay where the padded input has at least this many times the bytes of the panels, since
# strips fetch nothing of a panel ahead.
PANELS_WORTH = 2
# Part of the second cache that a strip may take, and all panels too, since each strip reads them.
STRIP_SHARE = 0.5
# A strip should have this many rows of its own for each row that it shares with the next strip.
REUSED = 2
# Most tiles along the rows of a strip.
MOST_ROWS = 28
# A panel gets strips of its own by guess if it reads at least this many bytes of columns.
WIDE_PANEL = 32
# Most vector multiply-adds that the guess unrolls; twice as many may be chosen.
MOST_WRITTEN = 256
# How many tiles of a window are offered, the best first.
OFFERED = 8
# Most vectors that the columns of such a tile fill.
MOST_VECTORS = 2
BYTE = 8  # bits
# Registers for the 16-bit products of bytes; their 32-bit sums are in other registers.
PAIRED = 2
# Fewest results along a row that share inputs: with fewer, multiply-adds wait for each other.
SMALLEST = 4


def applies(state, block, target):
    view = state.view(block)
    if reason := view.has_no_register_tile():
        return reason
    strips = _Strips.of(view)
    if strips is None:
        return Pass("it reads no rows that are padded for it")
    return Apply(later=not _pays(strips, target))


def apply(state, block, target):
    sch, view = state.sch, state.view(block)
    (epilogue,) = view.consumers
    inline_producers(sch, epilogue.rv)
    strips = _Strips.of(view)
    offered = strips.tiles(target) if strips else []
    if strips is None or not offered:
        raise ValueError("no tile fits the registers")
    groups = groups_of_steps(view) if sums_matrices(view, target) else 0
    guess = 0 if groups else first_that_fits(view, epilogue, offered, target)
    tile = state.choose("register", offered, guess, ordered=True)
    by_panels = strips.divides(tile) and state.choose(
        "span",
        [True, False],
        guess=int(strips.bytes(tile) < WIDE_PANEL),
    )
    rows = strips.rows(state, tile, by_panels, target)
    if view.is_contraction:
        pack_operands(state, view, tile[-1], target)
    outer, inner, reducing = split_tiles(sch, view, tile, groups)
    vectors = math.prod(tile) // math.gcd(tile[-1], lanes(target, view.bits))
    most = MOST_WRITTEN if strips.moves_with_columns else 0
    reduced = reducing if groups else _taps_written_out(state, reducing, vectors, most)
    if takes_lanes(view, tile, target):
        reduced = _by_lanes(sch, reduced)
    # One cache line holds bytes of several panels: compute all panels of a place before the next.
    narrow = strips.moves_with_columns and strips.padding.bits <= BYTE
    panels_last = narrow and not by_panels
    strip = (strips.axis, rows)
    tasks, tiles = _nested(sch, outer, strip, by_panels, [*reduced, *inner], panels_last)
    if not panels_last:
        at = 0 if by_panels else 1
        widen_once(state, view, [*tasks, *tiles[:at]], tiles[at:], target)
    sch.reverse_compute_at(epilogue.rv, tiles[-1], preserve_unit_loops=True)
    _pad(sch, strips.padding, tasks[-1], target)
    written_out(sch, epilogue.rv, 1 if groups else len(view.spatial), target, columns=tile[-1])
    init = write_out_tile(sch, view, tile, reduced[0], target)
    cut_columns(sch, [init, view.rv, epilogue.rv], view.spatial[-1], tile[-1])
    state.finish(init, view.rv, epilogue.rv, strips.padding.rv)
    return [state]


def _pays(strips, target):
    """Whether strips are probably the fastest way to pad the input."""
    view = strips.view
    if sums_pairs(view, target):
        return True
    few_taps = strips.has_own_columns and math.prod(view.reduced) <= FEW_TAPS
    if few_taps and not _slides_along_columns(strips):
        return False
    if columns_apart(view, target):  # register-tile fills whole vectors
        return False
    if is_mostly_padding(view):  # most strips would have to share its rows
        return False
    results, padded = math.prod(view.spatial), math.prod(strips.padding.spatial)
    tasks = math.prod(view.spatial[: strips.axis + 1])
    if not strips.has_own_columns and (tasks < 2 * target.cores or strips.has_large_panels(target)):
        return False
    few = results * math.prod(view.reduced) <= FEW_USES * padded or _pads_columns(strips.padding)
    large = strips.has_own_columns or padded * strips.padding.bits > 8 * target.l1_bytes
    return few and large


@dataclass(frozen=True)
class _Strips:
    """A reduction that reads a padded input, and the stage that pads it.

    axis: the axis of the result that is cut into strips.
    """

    view: BlockView
    padding: BlockView
    axis: int

    @classmethod
    def of(cls, view):
        """The reduction with its padding; None without padding, or where a row has one result."""
        rank = len(view.spatial)
        padding = view.padding if rank >= 4 and view.spatial[-2] > 1 else None
        return cls(view, padding, rank - 3) if padding else None

    @property
    def has_own_columns(self):
        """Whether each column reads a column of its own, as in a depthwise convolution."""
        column = self.view.axes(SPATIAL)[-1].var
        found = [index for index, _ in self._read if uses(index, column)]
        return bool(found) and not any(divisions(index, "FloorDiv") for index in found)

    @property
    def moves_with_columns(self):
        """Whether columns, or groups of them, read columns of their own."""
        return self._extent(-1) > 1

    def has_large_panels(self, target):
        """Whether reading all panels for each strip costs more than padding the whole input."""
        padded = math.prod(self.padding.spatial) * self.padding.bits / 8
        room = min(padded / PANELS_WORTH, STRIP_SHARE * target.l2_bytes)
        return panel_bytes(self.view, self.view.spatial[-1]) > room

    def divides(self, tile):
        """Whether there are several panels, each of which reads its own columns of the input."""
        return tile[-1] < self.view.spatial[-1] and self.moves_with_columns

    def bytes(self, tile):
        """Bytes of the padded input's columns that a panel reads, at one place of the image."""
        columns = self._extent(-1) * tile[-1] / self.view.spatial[-1]
        return columns * self.padding.bits / BYTE

    def tiles(self, target):
        """Sizes of register tiles, the best first."""
        if sums_matrices(self.view, target):
            return matrix_sizes(self.view, target)
        found = _window_tiles(self.view, target) if self.has_own_columns else []
        return found or register_tiles(self.view, target, [1] * len(self.view.node.iter_vars))

    def rows(self, state, tile, by_panels, target):
        """Choose how many rows of tiles make a strip.

        The guess has enough rows that few inputs are padded twice, as far as a strip stays in the
        cache and all cores stay busy.
        """
        size, spatial = tile[self.axis], self.view.spatial
        count = math.ceil(spatial[self.axis] / size)
        options = [d for d in divisors(count) if d <= MOST_ROWS]
        tasks, share = math.prod(spatial[: self.axis]) * count, 1.0
        if by_panels:
            tasks, share = tasks * math.ceil(spatial[-1] / tile[-1]), tile[-1] / spatial[-1]
        room = STRIP_SHARE * target.l2_bytes / share
        least = 2 * target.cores if target.cores > 1 else 1
        fit = [0, *(at for at, rows in enumerate(options) if tasks >= least * rows)]
        fit = [at for at in fit if at == 0 or self._bytes(options[at] * size) <= room]
        fit = [at for at in fit if keeps_busy(tasks // options[at], target.cores)] or fit
        stride, shared = self._step
        enough = [at for at in fit if options[at] * size * stride >= REUSED * shared]
        return state.choose("strip", options, guess=min(enough, default=fit[-1]), ordered=True)

    def _bytes(self, rows):
        """Bytes of the padded input that this many rows of the result read."""
        stride, shared = self._step
        whole = math.prod(self.padding.spatial[1:]) * self.padding.bits / 8
        return whole * min(1.0, (rows * stride + shared) / self._extent(self.axis))

    @property
    def _step(self):
        """Padded rows from one row of the result to the next, and how many rows both read."""
        padded, results = self._extent(self.axis), self.view.spatial[self.axis]
        var = self.view.axes(SPATIAL)[self.axis].var
        stride = max(factor(index, var) for index, _ in self._read)
        return stride, max(0, padded - results * stride)

    def _extent(self, axis):
        """Extent of the input's axis along which an axis of the result moves; 1 without one."""
        var = self.view.axes(SPATIAL)[axis].var
        return max((size for index, size in self._read if uses(index, var)), default=1)

    @property
    def _read(self):
        """The indices at which the padded input is read, each with the extent of its axis."""
        (made,) = [region.source for region in self.padding.node.writes]
        return [
            pair
            for source, indices in self.view.operands
            if source.same_as(made)
            for pair in zip(indices, self.padding.spatial, strict=True)
        ]


def _taps_written_out(state, reduced, vectors, most):
    """The reducing loops. A choice of the innermost ones is unrolled: none, a row of taps, or all.

    vectors: how many a tile has. most: how many vector multiply-adds the guess unrolls.
    """
    sizes = [extent(state.sch, loop) for loop in reduced]
    written = [math.prod(sizes[len(sizes) - count :]) * vectors for count in range(len(sizes) + 1)]
    options = [count for count, size in enumerate(written) if size <= 2 * MOST_WRITTEN] or [0]
    fit = max(at for at, count in enumerate(options) if at == 0 or written[count] <= most)
    count = state.choose("taps", options, guess=fit, ordered=True)
    for loop in reduced[len(reduced) - count :]:
        state.sch.unroll(loop)
    return reduced


def _by_lanes(sch, reduced):
    """The reducing loops; the innermost goes in steps that read rows as vectors."""
    *outer, last = reduced
    if sch.get(last).kind != tirx.ForKind.UNROLLED:
        over, last = sch.split(last, [None, ROW_LANES])
        sch.unroll(last)
        outer.append(over)
    reading_vectors(sch, last)
    return [*outer, last]


def _nested(sch, outer, strip, by_panels, inside, panels_last):
    """Order the loops. Returns (loops over strips, loops over the tiles of a strip).

    strip: the axis, and how many of its tiles make a strip. panels_last: whether the loop over
    panels is innermost, which needs strips of all panels.
    """
    axis, rows = strip
    block, row = sch.split(outer[axis], [None, rows])
    *others, panels = outer
    tasks, inner = [*others[:axis], block], [row, *others[axis + 1 :]]
    apart = by_panels and is_marked(sch, panels)
    if by_panels and not apart:
        tasks = [*tasks, panels]
    else:
        inner = [*inner, panels] if panels_last else [panels, *inner]
    sch.reorder(*tasks, *inner, *inside)
    task = parallel(sch, tasks)
    if not apart:
        return [task], inner
    sch.parallel(panels)  # lowering joins them (`codegen/passes/tile_tasks.py`)
    return [task, panels], inner[1:]


def _pad(sch, padding, strip, target):
    """Pad each strip where it is read; rows need no condition where no column is padded."""
    sch.compute_at(padding.rv, strip, preserve_unit_loops=True)
    *_, row, column = sch.get_loops(padding.rv)
    if _pads_columns(padding):
        partitioned(sch, row)  # LLVM vectorises the parts that are only copied
        partitioned(sch, column)
    else:
        partitioned(sch, row)
        vectorized(sch, column, target, padding.bits)


def _slides_along_columns(strips):
    """Whether windows of several rows move by one along padded columns, as with channels first.

    Padded at each tap, every lane would have conditions of its own.
    """
    column, taps = strips.view.axes(SPATIAL)[-1].var, strips.view.reduced
    steps = [factor(indices[-1], column) for _, indices in strips.view.operands if indices]
    return _pads_columns(strips.padding) and sum(size > 1 for size in taps) > 1 == max(steps)


def _pads_columns(padding):
    """Whether the contiguous axis is padded."""
    column = padding.axes(SPATIAL)[-1].var
    conditions = [call.args[0] for call in collect(padding.node.body, tvm.ir.Call) if call.args]
    return any(uses(condition, column) for condition in conditions)


def _window_tiles(view, target):
    """Sizes of a depthwise convolution's tiles, the fewest loads a multiply-add first.

    A row of taps is unrolled, so that neighbouring results share inputs:

        acc[w, C] += x[w * stride + s * dilation, C] * k[s, C]        for all w of the tile, s

    Compilers keep those inputs in registers from their first use to their last. A tile therefore
    fits where registers hold its accumulators, its inputs and a vector of the kernel; a larger one
    spills. The list is empty where even the smallest tile does not fit.
    """
    window, columns = Window.of(view), view.spatial[-1]
    wide = sums_pairs(view, target)
    lane = lanes(target, BYTE if wide else view.bits)
    sums, beside = (view.bits // BYTE, PAIRED) if wide else (1, 0)
    width = lane if columns > lane else math.gcd(columns, lane)
    scored = []
    for vectors in range(1, min(MOST_VECTORS, math.ceil(columns / width)) + 1):
        for size in range(min(SMALLEST, window.results), window.results + 1):
            held = vectors * (sums * size + window.inputs(size) + 1) + beside
            if held <= target.vector_registers:
                score = window.cost(size, vectors) * _waste(columns, vectors * width)
                scored.append((score, (*[1] * (len(view.spatial) - 2), size, vectors * width)))
    scored.sort()
    return [tile for _, tile in scored[:OFFERED]]


def _waste(columns, panel):
    """Computed columns divided by real columns."""
    return math.ceil(columns / panel) * panel / columns
