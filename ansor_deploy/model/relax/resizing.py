"""Linear resizing of images as a function of elements, with constant places and weights.

    y[i, j, :] = sum over a, b: (v[a, i] * w[b, j]) * x[rows[a, i], columns[b, j], :]

TVM computes the place in the image anew for each element, and by other operations than ONNX
Runtime, so that far from the origin of a large image the weights differ.

Where columns are the last axis, each element reads its own columns: a scalar load for each. If the
image grows, a whole vector of elements reads only a few columns:

    y[:, i, J + j] = sum over t: w[t, J + j] * (v[0, i] * x[:, rows[0, i], first[J] + t] + ...)

A column that an element does not read counts as 0, whatever its value.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._tvm import relax, shape_of, tirx, tvm
from ..operators.sampling import Axis, Manner, taps
from .patterns import INJECTIVE

_SIDES = (0, 1)
# The most columns that a vector reads.
_MOST_COLUMNS = 12
# The weight of a column that an element does not read; real weights are not negative.
_UNREAD = -1
_GIVEN = (
    "method", "coordinate_transformation_mode", "rounding_method", "cubic_alpha", "cubic_exclude",
    "extrapolation_value",
)  # fmt: skip


def enlarges(call: Any) -> bool:
    """Whether the result of a resize has more elements than its image."""
    return bool(np.prod(shape_of(call.ty)) > np.prod(shape_of(call.args[0].ty)))


def resized(call: Any, image: relax.Expr, layout: str) -> relax.Expr:
    """The image, in another layout, resized as by the call."""
    region = tuple(float(one) for one in call.attrs.roi)
    given = {name: getattr(call.attrs, name) for name in _GIVEN}
    return relax.op.image.resize2d(image, call.args[1], region, layout=layout, **given)


def legalized_in(lanes: int) -> Callable[[relax.BlockBuilder, relax.Call], relax.Expr]:
    """The legalisation of resizing, for vectors of so many elements."""

    def legalized(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        """A resize as a PrimFunc: ours if it is linear, TVM's for others."""
        if call.attrs.method != "linear":
            return call.op.get_attr("FLegalize")(builder, call)
        at = call.attrs.layout.index("H")
        rows, columns = (_tables(call, axis) for axis in (at, at + 1))
        last = at + 2 == len(shape_of(call.ty))
        grouped = _grouped(*columns, lanes) if last and lanes > 1 else None
        tables = [relax.const(one) for one in (*rows, *(grouped or columns))]
        compute = _by_vectors(lanes) if grouped else _by_elements
        named = {"primfunc_name_hint": "resize2d", "primfunc_attrs": {"op_pattern": INJECTIVE}}
        return builder.call_te(compute, call.args[0], *tables, at, shape_of(call.ty), **named)

    return legalized


def _tables(call: Any, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """(places, weights) along an axis: a row for each of the two sides, a column an element."""
    size, made = shape_of(call.args[0].ty)[axis], shape_of(call.ty)[axis]
    mode = str(call.attrs.coordinate_transformation_mode)
    along = Axis(axis, size, made, np.float32(made) / np.float32(size))
    places, weights = taps(along, Manner("linear", mode, "", 0.0, False, False))
    return places.T.astype("int32").copy(), weights.T.astype(str(call.ty.dtype)).copy()


def _grouped(
    places: np.ndarray, weights: np.ndarray, lanes: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """(the first column that each vector reads, a row of weights for it and each one behind it).

    None if vectors do not divide a row, or read too many columns.
    """
    if places.shape[1] % lanes:
        return None
    vectors = places.reshape(len(_SIDES), -1, lanes)
    first = vectors.min((0, 2))
    count = int((vectors.max((0, 2)) - first).max()) + 1
    if count > _MOST_COLUMNS:
        return None
    first = np.minimum(first, places.max() + 1 - count)
    behind = places - np.repeat(first, lanes)
    table = np.full((count, places.shape[1]), _UNREAD, weights.dtype)
    elements = np.arange(places.shape[1])
    table[behind, elements] = 0
    np.add.at(table, (behind, elements), weights)
    return first, table


def _by_elements(
    x: Any, rows: Any, high: Any, columns: Any, wide: Any, at: int, made: tuple[int, ...]
) -> Any:
    def element(*place: Any) -> Any:
        i, j = place[at : at + 2]
        total = 0
        for a in _SIDES:
            for b in _SIDES:
                inner = _index(rows[a, i]), _index(columns[b, j])
                source = (*place[:at], *inner, *place[at + 2 :])
                total = total + high[a, i] * wide[b, j] * x[source]
        return total

    return tvm.te.compute(made, element, name="resize")


def _by_vectors(lanes: int) -> Callable[..., Any]:
    def compute(
        x: Any, rows: Any, high: Any, first: Any, wide: Any, at: int, made: tuple[int, ...]
    ) -> Any:
        def element(*place: Any) -> Any:
            *outer, i, j = place
            total = 0
            for behind in range(int(wide.shape[0])):
                column, weight = _index(first[j // lanes]) + behind, wide[behind, j]
                places = [(*outer, _index(rows[a, i]), column) for a in _SIDES]
                upper, lower = (high[a, i] * x[place] for a, place in enumerate(places))
                read = tirx.Select(weight < 0, tirx.const(0, x.dtype), upper + lower)
                total = total + weight * read
            return total

        return tvm.te.compute(made, element, name="resize")

    return compute


def _index(place: Any) -> Any:
    """A table's place in the type of loops, whose arithmetic it joins where stages are inlined."""
    return tirx.Cast("int64", place)
