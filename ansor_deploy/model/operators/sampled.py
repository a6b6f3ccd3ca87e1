"""GridSample with channels last: the place to read is computed once for all channels.

    y[n, i, j, :] = sum of four: weight * x[n, row, column, :]          of grid[n, i, j]

TVM computes it again for each element, on images with channels first. For few channels that is as
fast; cubic sampling and volumes are left to TVM as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._lazy_tvm import relax, tirx, tvm
from .activations import number
from .converting import Call
from .operator import Operator

# From this many channels on, vectors of channels are worth transposing images.
_ENOUGH = 8


def grid_sample(call: Call) -> Any:
    """The image at the places of the grid."""
    sampler = _Sampler(
        mode=call.attribute("mode", "bilinear"),
        padding=call.attribute("padding_mode", "zeros"),
        aligned=bool(call.attribute("align_corners", 0)),
    )
    shape = call.shape(0)
    if len(shape) != 4 or shape[1] < _ENOUGH or sampler.mode in ("cubic", "bicubic"):
        return call.by_tvm()
    if call.dtype(0) != "float32" or call.dtype(1) != "float32":
        return call.by_tvm()
    image = call.emit(relax.op.permute_dims(call.inputs[0], [0, 2, 3, 1]))
    made = call.bb.emit_te(sampler.compute, image, call.inputs[1], primfunc_name_hint="grid_sample")
    return relax.op.permute_dims(made, [0, 3, 1, 2])


@dataclass(frozen=True)
class _Sampler:
    """How values between elements are computed, in ONNX's terms."""

    mode: str
    padding: str
    aligned: bool

    def compute(self, image: Any, grid: Any) -> Any:
        """In TE: [n, i, j, channels] from an image [n, rows, columns, channels]."""
        sizes = [int(one) for one in image.shape[1:3]]
        nearest = self.mode == "nearest"

        def element(n: Any, i: Any, j: Any, c: Any) -> Any:
            y, x = (self._place(grid[n, i, j, 1 - axis], sizes[axis]) for axis in range(2))
            if nearest:
                row, column = (_whole(tirx.nearbyint(at)) for at in (y, x))
                return _read(image, n, row, column, c)
            total: Any = None
            for row, high in _sides(y):
                for column, wide in _sides(x):
                    part = _read(image, n, row, column, c) * high * wide
                    total = part if total is None else total + part
            return total

        shape = (*grid.shape[:3], image.shape[3])
        return tvm.te.compute(shape, element, name="sampled", tag="grid_sample")

    def _place(self, at: Any, size: int) -> Any:
        """The place along an axis of a coordinate from -1 to 1."""
        along = (at + number(1)) * number(size - 1 if self.aligned else size)
        where = along / number(2) if self.aligned else number(-0.5) + along / number(2)
        if self.padding == "reflection":
            where = self._reflected(where, size)
        if self.padding != "zeros":
            where = tirx.min(tirx.max(where, number(0)), number(size - 1))
        return where

    def _reflected(self, at: Any, size: int) -> Any:
        """Reflect a place beyond an end back into the range, as often as necessary."""
        begin, span = (0.0, size - 1) if self.aligned else (-0.5, size)
        far = tirx.abs(number(begin) - at)
        times = tirx.truncdiv(_whole(far), tirx.const(max(span, 1), "int32"))
        extra = far - tirx.Cast("float32", times * span)
        even = tirx.EQ(tirx.truncmod(times, tirx.const(2, "int32")), 0)
        back = tirx.Select(even, extra + number(begin), number(span) - extra + number(begin))
        within = tirx.all(at >= number(begin), at <= number(begin + span))
        return tirx.Select(within, at, back)


def _sides(at: Any) -> list[tuple[Any, Any]]:
    """(the element below a place and the one above, each with its weight)."""
    below = tirx.floor(at)
    near, share = _whole(below), at - below
    return [(near, number(1) - share), (near + tirx.const(1, "int32"), share)]


def _read(image: Any, n: Any, row: Any, column: Any, c: Any) -> Any:
    """An element; zero outside of the image."""
    rows, columns = (int(one) for one in image.shape[1:3])
    inside = tirx.all(row >= 0, row < rows, column >= 0, column < columns)
    place = n, _held(row, rows), _held(column, columns), c
    return tirx.Select(inside, image[place], number(0))


def _held(at: Any, size: int) -> Any:
    return tirx.min(tirx.max(at, tirx.const(0, "int32")), tirx.const(size - 1, "int32"))


def _whole(at: Any) -> Any:
    return tirx.Cast("int32", at)


OPERATORS = (Operator("GridSample", since=16, convert=grid_sample),)
