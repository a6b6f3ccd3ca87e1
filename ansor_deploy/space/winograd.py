"""Winograd's convolution (Lavin and Gray, 2016): fewer multiplications for the same result.

    out[n, y, x, k] += data[n, y + r, x + s, c] * weight[r, s, c, k]
    -->
    tiles[p, a, b, c] = data, cut into overlapping tiles
    data_0[p, i, b, c], data_1[i, j, p, c] = BT tiles, then B
    weights[i, j, c, k] = G weight GT                        of the weight alone
    products[i, j, p, k] += data_1[i, j, p, c] * weights[i, j, c, k]
    sums_0[p, y, j, k], sums_1[p, y, x, k] = AT products, then A
    out[n, y, x, k] = sums_1, the tiles put together

For integers all of it is exact: G is multiplied by its common denominator, and the last sums are
divided by that. Where BT and AT only add and subtract, bytes minus their zero point, and weights,
stay within 16 bits; sums stay within 32 bits if there are not too many channels.

`cook_toom.py` has the matrices. An axis with a window of one is not transformed, so that the same
code serves one, two and three axes, and windows such as 1x3. Beyond the edges, tiles hold zeros,
and their results are cut off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from .._tvm import structural_equal, tirx, tvm
from .block_view import KEPT, REDUCE, SPATIAL, BlockView
from .cook_toom import Matrix, matrices

# Names of the new blocks. Traces of records use them: do not change them.
TILES, WEIGHTS, PRODUCTS, OUT = "tiles", "weights", "products", "out"
_KEPT = {KEPT: True}
# Types of float weights; those of 16 bits are converted to float32 before their transform.
_WEIGHTS = ("float32", "float16", "bfloat16")
# Types of data, weights and results of an integer convolution whose bytes were widened.
_WIDENED = ("int16", "int8", "int32")
# Types of data, weights and results of an integer convolution of signed bytes.
_SIGNED = ("int8", "int8", "int32")
# Type of transformed integers.
_TRANSFORMED = "int16"
# Largest absolute values of integer data and weights.
_LARGEST = (255, 128)
# Transformed integers must be below this.
_INT16 = 1 << 15
# Sums of integer products must be below this.
_INT32 = 1 << 31


@dataclass(frozen=True)
class Convolution:
    """A block that Winograd's algorithm fits: stride 1, undilated, one group, channels last.

    data, weight, out: its buffers, of floats or of integers; integer data has 16 bits, or is of
    signed bytes. batch, places, channels, filters: extents of the result's axes, and of the
    channels. windows: the taps along each axis of `places`.
    """

    data: Any
    weight: Any
    out: Any
    batch: int
    places: tuple[int, ...]
    windows: tuple[int, ...]
    channels: int
    filters: int

    @classmethod
    def of(cls, view: BlockView) -> Convolution | None:
        """The convolution that a block is, or None."""
        operands = view.operands
        if not view.is_contraction or len(operands) != 2:
            return None
        (data, at), (weight, taps) = operands
        (written,) = [region.source for region in view.node.writes]
        types = [str(one.dtype) for one in (data, weight, written)]
        floats = types[0] == types[2] == "float32" and types[1] in _WEIGHTS
        widened = types == [*_WIDENED] and any(one.widens_bytes for one in view.producers)
        if not floats and not widened and types != [*_SIGNED]:
            return None
        spatial, reduced = view.axes(SPATIAL), view.axes(REDUCE)
        if not len(at) == len(spatial) == len(taps) == len(reduced) + 1 > 2:
            return None
        (n, *places, k), (*windows, c) = [[a.var for a in axes] for axes in (spatial, reduced)]
        ends = [p + w for p, w in zip(places, windows, strict=True)]
        if not _same(at, [n, *ends, c]) or not _same(taps, [*windows, c, k]):
            return None
        batch, *sizes, filters = view.spatial
        *widths, channels = view.reduced
        shapes = (batch, tuple(sizes), tuple(widths), channels, filters)
        return cls(data, weight, written, *shapes)

    @property
    def is_whole(self) -> bool:
        """Whether it is a convolution of integers."""
        return str(self.out.dtype) == _WIDENED[-1]

    @property
    def is_of_bytes(self) -> bool:
        """Whether it would multiply bytes if it were computed directly."""
        return str(self.data.dtype) == _SIGNED[0]

    def fits(self, size: int) -> bool:
        """Whether the types hold all values for tiles of this many results along each axis."""
        axes = [_whole(*matrices(size if w > 1 else 1, w)) for w in self.windows]
        return not self.is_whole or _stays_whole(axes, self.channels)


def _whole(at: Matrix, g: Matrix, bt: Matrix) -> tuple[Matrix, Matrix, Matrix, int]:
    """The matrices of an axis with G made integer, and the factor that G is multiplied by."""
    scale = math.lcm(*(value.denominator for row in g for value in row))
    return at, tuple(tuple(value * scale for value in row) for row in g), bt, scale


def _stays_whole(axes: Sequence[tuple[Matrix, Matrix, Matrix, int]], channels: int) -> bool:
    """Whether transformed data and weights fit 16 bits, and each sum of products 32 bits."""
    if any(abs(v) > 1 for at, _, bt, _ in axes for row in (*at, *bt) for v in row):
        return False
    reach = [[[sum(map(abs, row)) for row in one] for one in axis[:3]] for axis in axes]
    data = _LARGEST[0] * math.prod(max(bt) for _, _, bt in reach)
    weights = _LARGEST[1] * math.prod(max(g) for _, g, _ in reach)
    added = [
        max(sum(abs(v) * w for v, w in zip(row, g, strict=True)) for row in at)
        for (at, *_), (_, g, _) in zip(axes, reach, strict=True)
    ]
    total = channels * data * _LARGEST[1] * math.prod(added)
    return max(data, weights) < _INT16 and total < _INT32


def _same(indices: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return all(structural_equal(a, b) for a, b in zip(indices, wanted, strict=True))


def winograd(view: BlockView, size: int) -> Any:
    """The stages that compute the same as a block, as a TE function of data and weight.

    size: results of a tile along each axis. ValueError where the block is no such convolution, or
    integers would not fit their types.
    """
    conv = Convolution.of(view)
    if conv is None:
        raise ValueError(f"{view.name} is no convolution of stride 1")
    if not conv.fits(size):
        raise ValueError(f"tiles of {size} of {view.name} do not fit its types")
    return _Stages(conv, size).function()


@dataclass(frozen=True)
class _Stages:
    """The stages of a convolution. size: results of a tile along each axis."""

    conv: Convolution
    size: int

    @property
    def of_axes(self) -> list[tuple[Matrix, Matrix, Matrix]]:
        """AT, G and BT of each axis; for integers, G is made integer."""
        axes = [matrices(self.size if w > 1 else 1, w) for w in self.conv.windows]
        return [_whole(*one)[:3] for one in axes] if self.conv.is_whole else axes

    @property
    def scale(self) -> int:
        """The factor by which the last sums are too large."""
        axes = [matrices(self.size if w > 1 else 1, w) for w in self.conv.windows]
        return math.prod(_whole(*one)[3] for one in axes) if self.conv.is_whole else 1

    @property
    def counts(self) -> list[int]:
        """Tiles along each axis."""
        results = [len(at) for at, _, _ in self.of_axes]
        return [-(-n // m) for n, m in zip(self.conv.places, results, strict=True)]

    def function(self) -> Any:
        """A function of data, weight and result."""
        te, conv = tvm.te, self.conv
        given = [([int(n) for n in b.shape], str(b.dtype)) for b in (conv.data, conv.weight)]
        data, weight = (te.placeholder(shape, dtype) for shape, dtype in given)
        transformed = self._data(self._tiles(data))
        channel = te.reduce_axis((0, conv.channels), "c")
        weights = self._weights(weight)
        *tile, tiles, _ = transformed.shape

        kind = str(conv.out.dtype)

        def multiplied(*at: Any) -> Any:
            *where, p, k = at
            value, by = transformed(*where, p, channel), weights(*where, channel, k)
            return te.sum(value.astype(kind) * by.astype(kind), channel)

        products = te.compute((*tile, tiles, conv.filters), multiplied, PRODUCTS)
        out = self._put_together(self._sums(products))
        return te.create_prim_func([data, weight, out], str(conv.data.shape[0].ty.dtype))

    def _tiles(self, data: Any) -> Any:
        """[p, a.., c]: the data of each tile, zero beyond the edges."""
        conv, axes = self.conv, self.of_axes
        shape = [len(bt) for _, _, bt in axes]

        def cut(p: Any, *at: Any) -> Any:
            *a, c = at
            n, *corner = _unfused(p, self.counts)
            starts = [t * len(m) for t, (m, _, _) in zip(corner, axes, strict=True)]
            place = [start + offset for start, offset in zip(starts, a, strict=True)]
            inside = [
                position < extent
                for position, extent, count, (m, _, bt) in zip(
                    place, data.shape[1:-1], self.counts, axes, strict=True
                )
                if (count - 1) * len(m) + len(bt) > int(extent)
            ]
            value = data(n, *place, c)
            value = value.astype(_TRANSFORMED) if conv.is_whole else value
            zero = tirx.const(0, value.ty.dtype)
            return tirx.if_then_else(tirx.all(*inside), value, zero) if inside else value

        count = conv.batch * math.prod(self.counts)
        return tvm.te.compute((count, *shape, conv.channels), cut, TILES)

    def _data(self, tiles: Any) -> Any:
        """[i.., p, c]: the tiles, transformed along one axis after another."""
        steps = [(d, bt) for d, (_, _, bt) in enumerate(self.of_axes) if len(bt) > 1]
        found = tiles
        for at, (axis, matrix) in enumerate(steps):
            found = _along(f"data_{at}", found, axis + 1, matrix, last=at == len(steps) - 1)
        return found

    def _weights(self, weight: Any) -> Any:
        """[i.., c, k]: the transformed weights, in one stage, which can be run beforehand."""
        if self.conv.is_whole:
            return self._whole_weights(weight)
        axes = self.of_axes

        def transformed(*at: Any) -> Any:
            *where, c, k = at
            every = product(*map(range, self.conv.windows))
            values = {taps: weight(*taps, c, k).astype("float32") for taps in every}
            for i, (_, g, _) in reversed(list(zip(where, axes, strict=True))):
                taken: dict[Any, list[Any]] = {}
                for taps, value in values.items():  # in order
                    taken.setdefault(taps[:-1], []).append(value)
                values = {taps: _pick(i, _rows(g, known)) for taps, known in taken.items()}
            return values[()]

        shape = [len(g) for _, g, _ in axes]
        return tvm.te.compute(
            (*shape, self.conv.channels, self.conv.filters), transformed, WEIGHTS, attrs=_KEPT
        )

    def _whole_weights(self, weight: Any) -> Any:
        """[i.., c, k]: integer weights, transformed along one axis after another, in each run."""
        shape = [int(extent) for extent in weight.shape]
        steps = [(d, g) for d, (_, g, bt) in enumerate(self.of_axes) if len(bt) > 1]
        found: Any = lambda *at: weight(*at).astype(_TRANSFORMED)  # noqa: E731
        for left, (axis, matrix) in zip(reversed(range(len(steps))), steps, strict=True):
            shape[axis] = len(matrix)
            name = f"{WEIGHTS}_{left}" if left else WEIGHTS
            found = _stage(name, shape, found, axis, matrix)
        return found

    def _sums(self, products: Any) -> Any:
        """[p, y.., k]: the results of each tile."""
        steps = [(d, at) for d, (at, _, bt) in enumerate(self.of_axes) if len(bt) > 1]
        *shape, count, filters = products.shape

        def found(p: Any, *at: Any) -> Any:
            *where, k = at
            return products(*where, p, k)

        for number, (axis, matrix) in enumerate(steps):
            shape[axis] = len(matrix)
            found = _stage(f"sums_{number}", (count, *shape, filters), found, axis + 1, matrix)
        return found

    def _put_together(self, sums: Any) -> Any:
        """[n, y.., k]: the tiles as one result, without their results beyond the edges."""
        conv, sizes = self.conv, [len(at) for at, _, _ in self.of_axes]

        def element(n: Any, *at: Any) -> Any:
            *place, k = at
            tile = n
            for position, size, count in zip(place, sizes, self.counts, strict=True):
                tile = tile * count + position // size
            value = sums(tile, *(y % size for y, size in zip(place, sizes, strict=True)), k)
            return value if self.scale == 1 else tirx.floordiv(value, self.scale)

        return tvm.te.compute((conv.batch, *conv.places, conv.filters), element, OUT)


def _unfused(index: Any, extents: Sequence[int]) -> list[Any]:
    """The indices that an index was fused from. extents: of all but the first of them."""
    found = []
    for extent in reversed(extents):
        found.append(index % extent)
        index = index // extent
    return [index, *reversed(found)]


def _along(name: str, source: Any, axis: int, matrix: Matrix, *, last: bool) -> Any:
    """A stage that multiplies by a matrix along one axis.

    last: whether it is the last such stage, which moves the axis of tiles behind the others.
    """
    count, *shape, channels = source.shape
    shape[axis - 1] = len(matrix)
    if not last:
        return _stage(name, (count, *shape, channels), source, axis, matrix)

    def moved(*at: Any) -> Any:
        *where, p, c = at
        return _multiplied(source, (p, *where, c), axis, matrix)

    return tvm.te.compute((*shape, count, channels), moved, name, attrs=_KEPT)


def _stage(
    name: str, shape: Sequence[Any], source: Callable[..., Any], axis: int, matrix: Matrix
) -> Any:
    return tvm.te.compute(
        shape, lambda *at: _multiplied(source, at, axis, matrix), name, attrs=_KEPT
    )


def _multiplied(source: Callable[..., Any], at: Sequence[Any], axis: int, matrix: Matrix) -> Any:
    values = [source(*at[:axis], j, *at[axis + 1 :]) for j in range(len(matrix[0]))]
    return _pick(at[axis], _rows(matrix, values))


def _pick(index: Any, options: Sequence[Any]) -> Any:
    """The option with that index; in an unrolled loop, only its expression is left."""
    *others, last = enumerate(options)
    found = last[1]
    for at, option in reversed(others):
        found = tirx.Select(index == at, option, found)
    return found


def _rows(matrix: Matrix, values: Sequence[Any]) -> list[Any]:
    """The values multiplied by each row. Rows of opposite points share equal subexpressions."""
    return [_row(row, values, _twins(matrix)) for row in matrix]


def _twins(matrix: Matrix) -> list[tuple[int, int]]:
    """Pairs of neighbouring columns that differ only in signs: those of opposite points."""
    columns = [[abs(value) for value in column] for column in zip(*matrix, strict=True)]
    found: list[tuple[int, int]] = []
    for j in range(len(columns) - 1):
        if columns[j] == columns[j + 1] and not (found and j in found[-1]):
            found.append((j, j + 1))
    return found


def _row(row: Sequence[Fraction], values: Sequence[Any], twins: Sequence[tuple[int, int]]) -> Any:
    if not twins:
        halves = ([(c, values[j]) for j, c in enumerate(row) if c and j % 2 == at] for at in (0, 1))
        return _sum([_positive(half) for half in halves if half])
    paired = {j for pair in twins for j in pair}
    terms = [(c, values[j]) for j, c in enumerate(row) if c and j not in paired]
    for j, k in twins:
        if row[j]:
            both = _sum([(Fraction(1), values[j]), (row[k] / row[j], values[k])])
            terms.append((row[j], both))
    return _sum(terms)


def _positive(terms: Sequence[tuple[Fraction, Any]]) -> tuple[Fraction, Any]:
    """Terms as a factor of 1 or -1, and a sum that begins with a positive term."""
    sign = Fraction(1 if terms[-1][0] > 0 else -1)
    return sign, _sum([(sign * c, v) for c, v in terms])


def _sum(terms: Sequence[tuple[Fraction, Any]]) -> Any:
    (first, value), *rest = sorted(terms, key=lambda term: term[0] < 0)
    total = value if first == 1 else _times(value, first)
    for coefficient, other in rest:
        scaled = other if abs(coefficient) == 1 else _times(other, abs(coefficient))
        total = total + scaled if coefficient > 0 else total - scaled
    return total


def _times(value: Any, factor: Fraction) -> Any:
    kind = value.ty.dtype
    return value * tirx.const(int(factor) if factor.denominator == 1 else float(factor), kind)
