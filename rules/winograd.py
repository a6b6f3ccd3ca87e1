"""Winograd: a convolution by tiles that take fewer multiplications and more additions.

for y, x, k: for r, s, c: out[y, x, k] += data[y + r, x + s, c] * weight[r, s, c, k]
-->
parallel p, c / C: data_1[i, j, p, C] = BT tile B              i, j (unrolled), C (vectors)
parallel i, j, p, k: products[i, j, p, k] += data_1[i, j, p, c] * packed[k / K, i, j, c, K]
parallel p, k / K: y[y, x, K] = epilogue(AT products A)        y, x (unrolled), K (vectors)

Weights must be constants. The library holds float weights transformed; it holds int8 weights as
they are and transforms them in each run. The first stage pads, and the last one cuts off what tiles
compute beyond the edges.
"""

import math

from ansor_deploy.space import (
    Apply,
    ApplyAndSkipRest,
    Convolution,
    Pass,
    extent,
    fused,
    inline_producers,
    interleave,
    lanes,
    parallel,
    split_lanes,
    steps_at_once,
    tile_reduction,
    vectorized,
    written_out,
)

NAME = "winograd"
KINDS = ("llvm",)

# Bits of an int8 weight after its transform.
BYTES_TRANSFORMED = 16
# Channels of 16-bit values that one instruction multiplies and adds up.
PAIR = 2
# Results of a tile along each axis.
SIZES = (4, 2)
# Most elements of a tile along an axis, since errors grow with the points of the transform.
WIDEST = 6
# Most elements of a tile: all of them are unrolled, and a larger one would be too much code.
LARGEST = 64
# Winograd is the default where its estimate is at most this part of the direct convolution's.
PAYS = 0.85
# The part of a core's peak that products reach.
EFFICIENCY = 0.8
# Cycles that float transforms take for each vector of an element of a tile.
TRANSFORM = 4.5
# Bytes of weights that a core reads from beyond its caches in a cycle.
WEIGHTS = 3.5
# Most cores that read weights at that rate at once.
READERS = 8
# Cycles for each transformed byte that the second caches of all cores do not hold: it is written to
# a farther cache or memory, and read from there.
MOVING = 0.26
# How many times faster multiply-adds of 16-bit pairs are than those of float32.
PAIRED = 1.6
# Cycles that an integer transform takes for each vector of an element: it only adds. Moving the
# data costs nothing more that can be measured.
ADDED = 3
# How many times faster multiply-adds of signed bytes are than those of float32. They take fewer
# instructions than those of 16 bits.
BYTES = 1.4


def applies(state, block, target):
    view = state.view(block)
    if _is_last_sum(state, block):
        return ApplyAndSkipRest()
    if state.is_rewritten:
        return Pass("its program is rewritten already")
    conv = Convolution.of(view)
    if conv is None or not _sizes(conv):
        return Pass(
            "it is no convolution of stride 1, one group and small windows, of numbers that fit"
        )
    if not view.has_constant(conv.weight):
        return Pass("its weights are no constants")
    if reason := view.lacks_epilogue():
        return reason
    return Apply(later=_cycles(conv, _best(conv, target), target) > PAYS * _cycles(conv, 1, target))


def apply(state, block, target):
    if conv := Convolution.of(state.view(block)):
        sizes = _sizes(conv)
        return [state.rewritten(NAME, block, sizes, sizes.index(_best(conv, target)))]
    _gather(state, block, target)
    _scatter(state, target)
    _multiply(state, target)
    return [state]


def _sizes(conv):
    """The sizes of tiles that this convolution may use."""
    return [size for size in SIZES if _fits(conv, size)]


def _best(conv, target):
    """The size with the lowest estimate."""
    return min(_sizes(conv), key=lambda size: _cycles(conv, size, target))


def _fits(conv, size):
    elements = [size + window - 1 for window in conv.windows if window > 1]
    wide = any(window > 1 and n < size for n, window in zip(conv.places, conv.windows, strict=True))
    small = elements and max(elements) <= WIDEST and math.prod(elements) <= LARGEST
    return small and not wide and conv.fits(size)


def _cycles(conv, size, target):
    """Estimated cycles: the products, the transforms, and reading weights, which no cache holds.

    The estimate uses fields of the target's fingerprint only, so that a default schedule is the
    same on every host. A size of 1 stands for the direct convolution.
    """
    sizes = [size if window > 1 else 1 for window in conv.windows]
    elements = math.prod(m + w - 1 for m, w in zip(sizes, conv.windows, strict=True))
    tiles = conv.batch * math.prod(-(-n // m) for n, m in zip(conv.places, sizes, strict=True))
    if size == 1:
        elements = math.prod(conv.windows)
    pairs = elements * conv.channels * conv.filters
    rate = EFFICIENCY * target.vector_bytes * _faster(conv, size)
    products = 2 * tiles * pairs / rate
    transforms = _transforms(conv, elements, tiles, target) if size > 1 else 0
    weights = math.prod(conv.windows) * conv.channels * conv.filters
    read = weights if conv.is_whole else 4 * pairs
    reading = read / (WEIGHTS * min(target.cores, READERS))
    return (products + transforms) / target.cores + reading


def _faster(conv, size):
    """How many times faster the multiply-adds are than those of float32."""
    if not conv.is_whole:
        return 1
    if not conv.is_of_bytes:
        return PAIRED
    return BYTES if size == 1 else 1


def _transforms(conv, elements, tiles, target):
    """Cycles to transform data and products, and weights too where they are integers."""
    if conv.is_whole:
        numbers = tiles * (conv.channels / 2 + conv.filters) + conv.channels * conv.filters
        return ADDED * elements * numbers / lanes(target)
    numbers = elements * tiles * (conv.channels + conv.filters)
    moved = max(0, 4 * numbers - target.l2_bytes * target.cores)
    return TRANSFORM * numbers / lanes(target) + MOVING * moved


def _is_last_sum(state, block):
    """Whether a block is the last sum: one elementwise stage assembles the result from it."""
    if not block.startswith("sums_"):
        return False
    users = state.view(block).consumers
    one = len(users) == 1 and not users[0].is_reduction
    return one and not users[0].name.startswith("sums_")


def _chain(view, prefix):
    """The block and the chain of producers with the same prefix of their names, in that order."""
    found = [view]
    while before := [one for one in found[-1].producers if one.name.startswith(prefix)]:
        found += before
    return found


def _gather(state, block, target):
    """Sum up a tile's products in registers, and store the results with the epilogue."""
    sch, sums = state.sch, _chain(state.view(block), "sums_")
    (epilogue,) = sums[0].consumers  # its loops are split by the remainders that it reads
    shape = sums[0].spatial[1:-1]
    n, *places, k = sch.get_loops(epilogue.rv)
    pairs = [sch.split(loop, [None, size]) for loop, size in zip(places, shape, strict=True)]
    tiles, inner = [t for t, _ in pairs], [i for _, i in pairs]
    vectors = vectorized(sch, k, target)
    *_, lane = sch.get_loops(epilogue.rv)
    sch.reorder(n, *tiles, vectors, *inner, lane)
    sch.parallel(fused(sch, [n, *tiles]))
    for loop in inner:
        sch.unroll(loop)
    for stage in sums:
        _write_out(state, stage, vectors, target)
    state.finish(epilogue.rv)


def _write_out(state, stage, loop, target):
    """Move a stage into a loop over vectors, and unroll and vectorise it there."""
    sch = state.sch
    sch.compute_at(stage.rv, loop, preserve_unit_loops=True)
    written_out(sch, stage.rv, len(stage.node.iter_vars), target)
    state.finish(stage.rv)


def _multiply(state, target):
    sch, weights, products = state.sch, state.view("weights"), state.block("products")
    sch.cache_write(products, 0, "global")
    if weights.bits == BYTES_TRANSFORMED:
        tile_reduction(state, state.view("products"), target)
        _transform(state, weights, target)
        return
    sch.annotate(weights.rv, "meta_schedule.layout_rewrite_preproc", True)
    state.finish(weights.rv)
    tile_reduction(state, state.view("products"), target)


def _transform(state, weights, target):
    """Transform int8 weights in each run: in the library, they would take seven times the room.

    Where pairs of channels are multiplied, the two are interleaved.
    """
    sch, (_, *before) = state.sch, _chain(weights, "weights")
    paired = steps_at_once(target, lanes(target)) == PAIR
    *shape, c, k = sch.get_loops(weights.rv)
    pair, step = sch.split(c, [None, PAIR if paired else 1])
    vectors, lane = split_lanes(sch, k, target, BYTES_TRANSFORMED)
    sch.reorder(pair, vectors, *shape, step, lane)
    if paired:
        interleave(sch, step)
    for loop in shape:
        sch.unroll(loop)
    if extent(sch, lane) > 1:
        sch.vectorize(lane)
    task = parallel(sch, [pair, vectors])
    for stage in before:
        _write_out(state, stage, task, target)
    state.finish(weights.rv)


def _scatter(state, target):
    """Transform the data's tiles, a vector of channels at a time."""
    sch = state.sch
    (last,) = [one for one in state.view("products").producers if one.name.startswith("data_")]
    stages = _chain(last, "data_")
    (tiles,) = stages[-1].producers
    inline_producers(sch, tiles.rv)
    *shape, p, c = sch.get_loops(last.rv)
    vectors = vectorized(sch, c, target, last.bits)
    *_, lane = sch.get_loops(last.rv)
    sch.reorder(p, vectors, *shape, lane)
    for loop in shape:
        sch.unroll(loop)
    sch.parallel(p)
    for stage in [*stages[1:], tiles]:
        _write_out(state, stage, vectors, target)
    state.finish(last.rv)
