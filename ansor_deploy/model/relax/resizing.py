"""Images resized linearly: a function of elements, by places and weights that are constants.

    y[i, j, :] = sum over a, b: (v[a, i] * w[b, j]) * x[rows[a, i], columns[b, j], :]

TVM computes for each element anew where it lies in the image, and in another order than ONNX
Runtime, so that far from the origin of a large image the weights are others.
"""

from typing import Any

import numpy as np

from ..._tvm import relax, shape_of, tvm
from ..operators.sampling import Axis, Manner, taps

# TVM's pattern of what is fused with other functions of elements.
_INJECTIVE = 2
_SIDES = (0, 1)


def legalized(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """A resized image as a PrimFunc: a linear one ours, others as TVM has them."""
    if call.attrs.method != "linear":
        return call.op.get_attr("FLegalize")(builder, call)
    at, made, kind = call.attrs.layout.index("H"), shape_of(call.ty), str(call.ty.dtype)
    tables = [
        relax.const(one)
        for axis in (at, at + 1)
        for one in _tables(call, axis, shape_of(call.args[0].ty)[axis], made[axis], kind)
    ]
    named = {"primfunc_name_hint": "resize2d", "primfunc_attrs": {"op_pattern": _INJECTIVE}}
    return builder.call_te(_resized, call.args[0], *tables, at, made, **named)


def _tables(call: Any, axis: int, size: int, made: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """(places, weights) along an axis, two for each element of the result: a row a side."""
    mode = str(call.attrs.coordinate_transformation_mode)
    along = Axis(axis, size, made, np.float32(made) / np.float32(size))
    places, weights = taps(along, Manner("linear", mode, "", 0.0, False, False))
    return places.T.astype("int32").copy(), weights.T.astype(kind).copy()


def _resized(
    x: Any, rows: Any, high: Any, columns: Any, wide: Any, at: int, made: tuple[int, ...]
) -> Any:
    def element(*place: Any) -> Any:
        i, j = place[at : at + 2]
        total = 0
        for a in _SIDES:
            for b in _SIDES:
                source = (*place[:at], rows[a, i], columns[b, j], *place[at + 2 :])
                total = total + high[a, i] * wide[b, j] * x[source]
        return total

    return tvm.te.compute(made, element, name="resize")
