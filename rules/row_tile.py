"""Row tile: a micro-kernel over whole rows of an image that skips the taps outside the image.

for h, w, c: p[h, w, c] = pad(x)
for h, w, c: for r, s: out[h, w, c] += p[h + r, w + s, c] * k[r, s, c]
for h, w, c: y[h, w, c] = epilogue(out[h, w, c])
-->
parallel c / C, h:
    for w / W (unrolled):
        for W, C: acc[W, C] = 0
        for r: if h + r is a row of x:
            for W, s (unrolled), C (vectors): acc[W, C] += x[h + r, w + s, C] * k[r, s, C]
        for W (unrolled), C (vectors): y[h, w, C] = epilogue(acc[W, C])

Nothing is padded: a row of taps above or below the image is skipped at run time. A whole row of
results is unrolled, so taps left or right of the image become no code. Of the multiply-adds of 5x5
taps on an image of 7x7 two thirds are left. The rule serves depthwise convolutions only: a sum over
channels reads each padded element for many columns, so that padding costs little there.
"""

import math

from ansor_deploy.space import (
    Apply,
    Pass,
    Window,
    cut_columns,
    inline_producers,
    keeps_busy,
    lanes,
    parallel,
    partitioned,
    sums_products,
    unpadded,
    written_out,
)

NAME = "row-tile"
KINDS = ("llvm",)

# A row of taps may be unrolled into this many vector multiply-adds for each register. With longer
# rows the code's size costs more than the border saves: images of 112 took 1.08 times as long as
# with strip-tile on AVX2, and 0.74 to 0.90 times on AVX-512.
MOST_WRITTEN = 12
# Most vectors that a tile's columns fill.
MOST_VECTORS = 2
# How many tiles are offered, the best first.
OFFERED = 8


def applies(state, block, target):
    view = state.view(block)
    if reason := view.has_no_register_tile() or _has_no_rows(view, target):
        return reason
    return Apply()


def apply(state, block, target):
    sch, view = state.sch, state.view(block)
    (epilogue,) = view.consumers
    inline_producers(sch, epilogue.rv)
    if padding := view.padding:
        sch.compute_inline(padding.rv)
    size, columns = state.choose("register", _tiles(view, target), ordered=True)
    over, serial, inner = _nested(sch, view, size, columns, target)
    sch.reverse_compute_at(epilogue.rv, over, preserve_unit_loops=True)
    unpadded(sch, serial[0])
    written_out(sch, epilogue.rv, len(view.spatial), target, columns=columns)
    written_out(sch, view.rv, len(inner), target, columns=columns)
    init = sch.decompose_reduction(view.rv, serial[0])
    written_out(sch, init, 2, target, columns=columns)
    cut_columns(sch, [init, view.rv, epilogue.rv], view.spatial[-1], columns)
    state.finish(init, view.rv, epilogue.rv)
    return [state]


def _has_no_rows(view, target):
    """Why a block is no depthwise convolution with rows short enough; None where it is one."""
    if len(view.spatial) < 4 or not sums_products(view.node.body) or not _sums_floats(view):
        return Pass("it sums up no rows of taps in floats")
    window = Window.of(view)
    if not window.own_columns or window.axis < 1:
        return Pass("its columns have no taps of their own")
    if window.results * window.taps > MOST_WRITTEN * target.vector_registers:
        return Pass("its rows are too long to be written out")
    return None


def _sums_floats(view):
    """Whether it sums floats: other rules add integers two or four at a time."""
    return str(view.node.writes[0].source.dtype).startswith("float")


def _tiles(view, target):
    """Sizes of tiles, (results of a row, columns); tiles that leave registers free come first."""
    window, lane = Window.of(view), lanes(target, view.bits)
    registers, wide = target.vector_registers, math.ceil(view.spatial[-1] / lane)
    found = {}
    for vectors in range(1, min(MOST_VECTORS, wide) + 1):
        for count in range(1, window.results + 1):
            size = math.ceil(window.results / count)
            sums = size * vectors
            used = sums + vectors * (window.taps + 1)
            if used <= registers or size == 1:
                tight = sums > registers // 2 or used > registers * 7 // 8
                found[size, vectors * lane] = (tight, -sums, -vectors)
    return sorted(found, key=found.__getitem__)[:OFFERED]


def _nested(sch, view, size, columns, target):
    """Order the loops. Returns (over a row's tiles, over rows of taps, those to be unrolled).

    Each of several cores gets rows of all panels, where there are enough: two cores that write
    panels of the same rows share cache lines.
    """
    rank, axis = len(view.spatial), Window.of(view).axis
    *rows, row, column = sch.get_loops(view.rv)[:rank]
    taps = sch.get_loops(view.rv)[rank:]
    over, within = sch.split(row, [None, size])
    panels, column = sch.split(column, [None, columns])
    serial, inner = taps[:axis], [within, *taps[axis:], column]
    count = math.prod(view.spatial[:-2])
    by_rows = target.cores > 1 and keeps_busy(count, target.cores)
    tasks = [*rows, panels] if by_rows else [panels, *rows]
    sch.reorder(*tasks, over, *serial, *inner)
    sch.unroll(over)
    if view.spatial[-1] % columns:
        partitioned(sch, panels)
        sch.parallel(panels)  # lowering joins it with the rows (`codegen/passes/tile_tasks.py`)
        parallel(sch, rows)
    else:
        parallel(sch, tasks)
    return over, serial, inner
