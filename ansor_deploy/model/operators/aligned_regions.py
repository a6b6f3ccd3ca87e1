"""RoiAlign: each part of a region is the average of points, each interpolated from four elements.

    y = begin + part * size + (point + 0.5) * size / points         along each axis
    result[region, part, :] += weight * x[image, row, column, :]    of the four around (y, x)

Coordinates are computed in the same order of operations as in ONNX Runtime, the oracle: a point
that is beyond the image by one last bit does not count. Where a node leaves the number of points
open, it is the size of a part, rounded up. Points beyond the image, of which a region may have any
number, are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..._lazy_tvm import tirx, tvm

# The two elements along an axis that a point lies between, each with its weight.
_Sides = list[tuple[Any, Any]]
# Channels that are computed as one vector, which is one register of the processor or several.
_LANES = 16
# From this many results on, threads save more time than they take to start.
_WORTH_THREADS = 1 << 16
# More points than any image has rows; still exact in float32.
_MANY = 1 << 24


@dataclass(frozen=True)
class Pooling:
    """How regions are pooled: the parts along each axis, each from points x points samples.

    points: 0 if the region's size decides. scale: from region coordinates to those of images.
    centred: whether coordinates refer to the centres of elements.
    """

    parts: tuple[int, int]
    points: int
    scale: float
    centred: bool

    def compute(self, data: Any, regions: Any, images: Any) -> Any:
        """In TE: [regions, *parts, channels] from [images, rows, columns, channels]."""
        shape = (int(regions.shape[0]), *self.parts, int(data.shape[3]))
        build = lambda ins, outs: _Program(self, ins, outs[0]).build()  # noqa: E731
        given, kind = [data, regions, images], str(data.dtype)
        return tvm.te.extern([shape], given, build, name="roi_align", dtype=[kind])


class _Program:
    """The statements of RoiAlign in TIR."""

    def __init__(self, what: Pooling, given: Any, made: Any) -> None:
        self.what, self.T = what, tvm.script.ir_builder.tirx
        self.kind = str(made.dtype)
        self.sizes = [int(extent) for extent in given[0].shape[1:3]]
        self.data, self.regions, self.images, self.made = map(self.T.buffer_proxy, (*given, made))
        self.shape = [int(extent) for extent in made.shape]

    def build(self) -> Any:
        """The whole statement."""
        T, shape = self.T, self.shape  # noqa: N806
        parallel = shape[0] * shape[1] * shape[2] * shape[3] >= _WORTH_THREADS
        with tvm.script.ir_builder.IRBuilder() as builder:
            with (T.parallel if parallel else T.serial)(0, shape[0]) as region:
                axes = [_Axis(self, region, at) for at in (0, 1)]
                count = self.local(self._count(axes))
                with T.serial(0, shape[1]) as row, T.serial(0, shape[2]) as column:
                    place = (region, row, column)
                    self._each_channel(lambda c: self._store(place, c, self.const(0)))
                    with axes[0].points(row) as y, axes[1].points(column) as x:
                        self._add(place, y, x)
                    self._each_channel(
                        lambda c: self._store(place, c, self._load(place, c) / count[0])
                    )
            return builder.get()

    def const(self, value: float) -> Any:
        """A number of the result's type."""
        return tirx.const(value, self.kind)

    def local(self, value: Any) -> Any:
        """A variable with this first value, as a buffer of one element."""
        T = self.T  # noqa: N806
        made = T.buffer_proxy(T.alloc_buffer((1,), str(value.ty.dtype), scope="local"))
        made[0] = value
        return made

    def _count(self, axes: list[_Axis]) -> Any:
        """The number of points of a part, at least one, since a part may have none."""
        return tirx.max(axes[0].count[0] * axes[1].count[0], self.const(1))

    def _load(self, place: tuple[Any, ...], channel: Any) -> Any:
        at = (*place, channel)
        return self.made[at]

    def _store(self, place: tuple[Any, ...], channel: Any, value: Any) -> None:
        at = (*place, channel)
        self.made[at] = value

    def _add(self, place: tuple[Any, ...], y: _Sides, x: _Sides) -> None:
        """Add the interpolated value at a point to the result."""
        image = self.images[place[0]]
        corners = [
            (self.local(high[0] * wide[0]), row[0], column[0])
            for row, high in y
            for column, wide in x
        ]

        def add(channel: Any) -> None:
            total = self._load(place, channel)
            for weight, row, column in corners:
                total = total + weight[0] * self.data[image, row, column, channel]
            self._store(place, channel, total)

        self._each_channel(add)

    def _each_channel(self, do: Any) -> None:
        """Apply a function to all channels: to whole vectors, then one by one to the rest."""
        T, channels = self.T, self.shape[3]  # noqa: N806
        whole = channels // _LANES
        if whole:
            with T.serial(0, whole) as block, T.vectorized(0, _LANES) as lane:
                do(block * _LANES + lane)
        if channels % _LANES:
            with T.serial(0, channels % _LANES) as left:
                do(whole * _LANES + left)


class _Axis:
    """The rows or the columns of a region. count: of points in a part along this axis."""

    def __init__(self, program: _Program, region: Any, at: int) -> None:
        self.of, self.at, self.region = program, at, region
        what, const, local = program.what, program.const, program.local
        scale, shift = const(what.scale), const(0.5 if what.centred else 0.0)
        begin, end = (program.regions[region, 1 - at + far] * scale - shift for far in (0, 2))
        self.begin = local(begin)
        whole = end - self.begin[0]
        whole = whole if what.centred else tirx.max(whole, const(1))
        self.size = local(whole / const(what.parts[at]))
        self.count = local(const(what.points) if what.points else self._rounded_up())

    def _rounded_up(self) -> Any:
        """The size of a part, rounded up, as the number of its points."""
        return _held(tirx.ceil(self.size[0]), self.of.const(0), self.of.const(_MANY))

    @contextmanager
    def points(self, part: Any) -> Iterator[_Sides]:
        """A loop over the points of a part in the image, or less than one element outside it."""
        T, const = self.of.T, self.of.const  # noqa: N806
        first, end = self._near(part)
        with T.serial(0, end - first) as step:
            at = self.of.local(self._where(part, tirx.Cast(self.of.kind, first + step)))
            inside = tirx.And(at[0] >= const(-1), at[0] <= const(self.of.sizes[self.at]))
            with T.If(inside), T.Then():
                yield self._sides(tirx.max(at[0], const(0)))

    def _where(self, part: Any, point: Any) -> Any:
        """The coordinate of a point."""
        const = self.of.const
        beside = (point + const(0.5)) * self.size[0] / self.count[0]
        return self.begin[0] + tirx.Cast(self.of.kind, part) * self.size[0] + beside

    def _near(self, part: Any) -> tuple[Any, Any]:
        """The first of the points that may be in the image, and the one behind the last."""
        if self.of.what.points:
            return tirx.const(0, "int32"), tirx.const(self.of.what.points, "int32")
        const, count = self.of.const, self.count[0]
        begin = self.begin[0] + tirx.Cast(self.of.kind, part) * self.size[0]
        apart = self.size[0] / tirx.max(count, const(1))
        ends = ((const(-1), -2), (const(self.of.sizes[self.at]), 2))
        near = [(edge - begin) / apart + const(more) for edge, more in ends]
        held = [_held(at, const(0), count) for at in near]
        first, end = (self.of.local(tirx.Cast("int32", at)) for at in held)
        return first[0], tirx.max(end[0], first[0])

    def _sides(self, at: Any) -> _Sides:
        """The elements that a point lies between; at the far edge the last element, twice."""
        local, last = self.of.local, tirx.const(self.of.sizes[self.at] - 1, "int32")
        low = local(tirx.min(tirx.Cast("int32", at), last))
        high = local(tirx.min(low[0] + tirx.const(1, "int32"), last))
        beyond = tirx.min(at, tirx.Cast(self.of.kind, last)) - tirx.Cast(self.of.kind, low[0])
        far = local(beyond)
        return [(low, local(self.of.const(1) - far[0])), (high, far)]


def _held(value: Any, low: Any, high: Any) -> Any:
    """A value limited to a range; NaN becomes the lower limit."""
    above = tirx.Select(value > low, value, low)
    return tirx.Select(above < high, above, high)
