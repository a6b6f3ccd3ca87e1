"""Row tile: a micro-kernel over whole rows of an image, without the taps beside it.

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

Nothing is padded: a row of taps that lies above or below the image is passed over, and since a
whole row of results is written out, what its taps read beside the image is no code. Of 5x5 taps on
an image of 7x7 that leaves two thirds. It is for columns with taps of their own: sums over
channels read what is padded once for many columns.
"""

import math

from ansor_deploy.space import (
    Apply,
    Pass,
    Window,
    cut_columns,
    inline_producers,
    lanes,
    parallel,
    partitioned,
    sums_products,
    unpadded,
    written_out,
)

NAME = "row-tile"
KINDS = ("llvm",)

# Multiply-adds for each register, a vector each, that a row of taps is written out as, at most:
# of longer rows the code outweighs the border. With AVX2 images of 112 took 1.08 times as long as
# by strips, with AVX-512 0.74 to 0.90.
MOST_WRITTEN = 12
# Vectors of a tile's columns, at most.
MOST_VECTORS = 2
# Tiles that are offered, the best first.
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
    over, serial, inner = _nested(sch, view, size, columns)
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
    """Why it is no sum of rows of taps that each column has for itself."""
    if len(view.spatial) < 4 or not sums_products(view.node.body) or not _sums_floats(view):
        return Pass("it sums up no rows of taps in floats")
    window = Window.of(view)
    if not window.own_columns or window.axis < 1:
        return Pass("its columns have no taps of their own")
    if window.results * window.taps > MOST_WRITTEN * target.vector_registers:
        return Pass("its rows are too long to be written out")
    return None


def _sums_floats(view):
    """Whether it is no sum of integers, which other rules add up by twos and fours."""
    return str(view.node.writes[0].source.dtype).startswith("float")


def _tiles(view, target):
    """How many results of a row make a tile, and columns: first what leaves registers free."""
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


def _nested(sch, view, size, columns):
    """Bring the loops in order: (over tiles of a row, over rows of taps, what is written out)."""
    rank, axis = len(view.spatial), Window.of(view).axis
    *rows, row, column = sch.get_loops(view.rv)[:rank]
    taps = sch.get_loops(view.rv)[rank:]
    over, within = sch.split(row, [None, size])
    panels, column = sch.split(column, [None, columns])
    serial, inner = taps[:axis], [within, *taps[axis:], column]
    sch.reorder(panels, *rows, over, *serial, *inner)
    sch.unroll(over)
    if view.spatial[-1] % columns:
        partitioned(sch, panels)
        sch.parallel(panels)  # lowering joins it with the rows (`codegen/passes/tile_tasks.py`)
        parallel(sch, rows)
    else:
        parallel(sch, [panels, *rows])
    return over, serial, inner
