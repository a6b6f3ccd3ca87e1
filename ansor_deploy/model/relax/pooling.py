"""Pools of large windows as two pools, first along rows, then along columns.

    y[i, j] = max over a, b: x[i + a, j + b]
    -->
    t[i, j] = max over a: x[i + a, j]
    y[i, j] = max over b: t[i, j + b]

A window of h x w elements takes h + w reads instead of h * w. A mean is a mean of means, since
padding is counted along each axis by itself.
"""

from typing import Any

from ..._tvm import relax, shape_of, tvm

# One pool has to take this many times the reads of both for a second kernel to pay, since that
# writes and reads one more image.
_PAYS = 1.6
_KINDS = {"relax.nn.max_pool2d": "max", "relax.nn.avg_pool2d": "avg"}


def legalized(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """A pool as PrimFuncs: one, or one along each axis."""
    kind = _KINDS[call.op.name]
    rounds = kind == "avg" and str(call.ty.dtype) != "float32"
    if rounds or not _pays(call):
        return call.op.get_attr("FLegalize")(builder, call)
    data = call.args[0]
    for axis in range(2):
        name = f"{kind}_pool2d"
        data = builder.emit_te(_along, data, call.attrs, kind, axis, primfunc_name_hint=name)
    return data


def _pays(call: relax.Call) -> bool:
    rows, columns = map(int, call.attrs.pool_size)
    at = call.attrs.layout.index("W")
    width, made = (shape_of(one.ty)[at] for one in (call.args[0], call))
    # The pool along rows computes all columns of the input.
    return rows * columns >= _PAYS * (rows * width / max(made, 1) + columns)


def _along(data: Any, attrs: Any, kind: str, axis: int) -> Any:
    """In TE, a pool with the windows' extent along one axis: 0 for rows, 1 for columns."""
    own = lambda values, other: [int(n) if at == axis else other for at, n in enumerate(values)]  # noqa: E731
    top, left, bottom, right = attrs.padding
    before, after = own((top, left), 0), own((bottom, right), 0)
    more = {"count_include_pad": attrs.count_include_pad} if kind == "avg" else {}
    return tvm.topi.nn.pool2d(
        data, own(attrs.pool_size, 1), own(attrs.strides, 1), own(attrs.dilation, 1),
        [*before, *after], kind, attrs.ceil_mode, attrs.layout, **more,
    )  # fmt: skip
