"""One rule an operator: how it is computed channels last, or None where it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tvm import relax
from .transposed import SPATIAL, transposed_convolution

if TYPE_CHECKING:
    from .layout import Walk


@dataclass
class Value:
    """A tensor in the forms in which it exists; one of the two is always there."""

    first: Any = None
    last: Any = None


Rule = Callable[["Walk", Any], "Value | None"]


def to_last(rank: int) -> list[int]:
    """Axes that take N C spatial to N spatial C."""
    return [0, *range(2, rank), 1]


def to_first(rank: int) -> list[int]:
    """Axes that take N spatial C to N C spatial."""
    return [0, rank - 1, *range(1, rank - 1)]


def _shape(expr: Any) -> list[int]:
    return [int(extent) for extent in expr.ty.shape]


def _rank(expr: Any) -> int:
    return len(expr.ty.shape) if isinstance(expr.ty, relax.TensorType) else 0


def _axis_in_last(axis: int, rank: int) -> int:
    return to_last(rank).index(axis % rank)


def _convolution(walk: Walk, call: Any) -> Value | None:
    rank, attrs = _rank(call), call.attrs
    weight = walk.constant(call.args[1])
    if weight is None or not attrs.data_layout.startswith("NC"):
        return None
    spatial = SPATIAL[rank]
    kernel = np.ascontiguousarray(weight.transpose([*range(2, rank), 1, 0]))
    conv = getattr(relax.op.nn, f"conv{rank - 2}d")
    done = conv(
        walk.last(call.args[0]),
        relax.const(kernel),
        strides=attrs.strides,
        padding=attrs.padding,
        dilation=attrs.dilation,
        groups=attrs.groups,
        data_layout=f"N{spatial}C",
        kernel_layout=f"{spatial}IO",
        out_dtype=attrs.out_dtype or None,
    )
    return Value(last=walk.emit(done))


def _transposed(walk: Walk, call: Any) -> Value | None:
    weight = walk.constant(call.args[1])
    if weight is None or not call.attrs.data_layout.startswith("NC"):
        return None
    data, shape = walk.last(call.args[0]), _shape(call)
    done = transposed_convolution(walk.emit, data, weight, call.attrs, shape)
    return None if done is None else Value(last=done)


def _pool(walk: Walk, call: Any) -> Value | None:
    if not walk.has_last(call.args[0]):
        return None
    attrs, layout = call.attrs, f"N{SPATIAL[_rank(call)]}C"
    op = getattr(relax.op.nn, call.op.name.rsplit(".", 1)[1])
    if "adaptive" in call.op.name:
        done = op(walk.last(call.args[0]), output_size=attrs.output_size, layout=layout)
    else:
        done = op(
            walk.last(call.args[0]),
            pool_size=attrs.pool_size,
            strides=attrs.strides,
            padding=attrs.padding,
            dilation=attrs.dilation,
            ceil_mode=attrs.ceil_mode,
            count_include_pad=attrs.count_include_pad,
            layout=layout,
        )
    return Value(last=walk.emit(done))


def _elementwise(walk: Walk, call: Any) -> Value | None:
    rank = _rank(call)
    tensors = [arg for arg in call.args if _rank(arg)]
    if not any(walk.has_last(arg) for arg in tensors):
        return None
    if any(_rank(arg) != rank and walk.constant(arg) is None for arg in tensors):
        return None
    args = [_operand_last(walk, arg, rank) for arg in call.args]
    return Value(last=walk.emit(relax.Call(call.op, args, call.attrs, call.ty_args)))


def _operand_last(walk: Walk, arg: Any, rank: int) -> Any:
    """A broadcast constant gets the output's rank before its axes are moved."""
    constant = walk.constant(arg)
    if constant is not None and 0 < constant.ndim < rank:
        constant = constant.reshape((1,) * (rank - constant.ndim) + constant.shape)
        return relax.const(np.ascontiguousarray(constant.transpose(to_last(rank))))
    return walk.last(arg) if _rank(arg) == rank else walk.first(arg)


def _concat(walk: Walk, call: Any) -> Value | None:
    if not isinstance(call.args[0], relax.Tuple):
        return None
    fields, rank = list(call.args[0].fields), _rank(call)
    known = [walk.has_last(f) or walk.constant(f) is not None for f in fields]
    if rank < 3 or not all(known) or not any(walk.has_last(f) for f in fields):
        return None
    axis = _axis_in_last(int(call.attrs.axis), rank)
    return Value(last=walk.emit(relax.op.concat([walk.last(f) for f in fields], axis)))


def _reduce(walk: Walk, call: Any) -> Value | None:
    (arg,) = call.args
    rank, axes = _rank(arg), call.attrs.axis
    if not walk.has_last(arg) or axes is None:
        return None
    reduced = {int(axis) % rank for axis in axes}
    op = getattr(relax.op, call.op.name.rsplit(".", 1)[1])
    moved = sorted(_axis_in_last(axis, rank) for axis in reduced)
    if call.attrs.keepdims:
        return Value(last=walk.emit(op(walk.last(arg), moved, keepdims=True)))
    kept = [axis for axis in to_last(rank) if axis not in reduced]
    if kept != sorted(kept):
        return None
    return Value(first=walk.emit(op(walk.last(arg), moved, keepdims=False)))


def _softmax(walk: Walk, call: Any) -> Value | None:
    if not walk.has_last(call.args[0]):
        return None
    op = getattr(relax.op.nn, call.op.name.rsplit(".", 1)[1])
    axis = _axis_in_last(int(call.attrs.axis), _rank(call))
    return Value(last=walk.emit(op(walk.last(call.args[0]), axis)))


def _pad(walk: Walk, call: Any) -> Value | None:
    if not walk.has_last(call.args[0]):
        return None
    widths, rank = [int(w) for w in call.attrs.pad_width], _rank(call)
    moved = [w for axis in to_last(rank) for w in widths[2 * axis : 2 * axis + 2]]
    padded = relax.op.nn.pad(
        walk.last(call.args[0]), moved, call.attrs.pad_mode, float(call.attrs.pad_value)
    )
    return Value(last=walk.emit(padded))


def _reshape(walk: Walk, call: Any) -> Value | None:
    """Dropping or adding extents of one keeps the elements' order in both forms."""
    constant = walk.constant(call.args[0])
    if constant is not None:
        return Value(first=relax.const(constant.reshape(_shape(call))))
    shape = _shape(call.args[0])
    if not walk.has_last(call.args[0]) or (shape[1] > 1 and max(shape[2:]) > 1):
        return None
    return Value(first=walk.emit(relax.op.reshape(walk.last(call.args[0]), _shape(call))))


def _permute(walk: Walk, call: Any) -> Value | None:
    rank = _rank(call)
    axes = [int(a) % rank for a in call.attrs.axes or reversed(range(rank))]
    constant = walk.constant(call.args[0])
    if constant is not None:
        return Value(first=relax.const(np.ascontiguousarray(constant.transpose(axes))))
    if not walk.has_last(call.args[0]):
        return None
    composed = [_axis_in_last(axis, rank) for axis in axes]
    last = walk.last(call.args[0])
    if composed == list(range(rank)):
        return Value(first=last)
    return Value(first=walk.emit(relax.op.permute_dims(last, composed)))


_UNARY = "abs ceil clip cos erf exp floor log negative round rsqrt sigmoid sin sqrt square tanh"
_BINARY = "add subtract multiply divide maximum minimum power"
_NN_UNARY = "relu relu6 leakyrelu gelu gelu_tanh selu silu softplus"
_REDUCE = "mean sum max min"

CONVOLUTIONS = {f"relax.nn.conv{n}d" for n in (1, 2, 3)}
POOLS = {f"relax.nn.{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_avg") for n in (1, 2, 3)}
REDUCTIONS = {f"relax.{name}" for name in _REDUCE.split()}
ELEMENTWISE = {f"relax.{name}" for name in f"{_UNARY} {_BINARY} astype where".split()}
ELEMENTWISE |= {f"relax.nn.{name}" for name in _NN_UNARY.split()}

RULES: dict[str, Rule] = {
    **dict.fromkeys(CONVOLUTIONS, _convolution),
    **{f"relax.nn.conv{n}d_transpose": _transposed for n in (1, 2, 3)},
    **dict.fromkeys(POOLS, _pool),
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(REDUCTIONS, _reduce),
    **{f"relax.{name}": _reshape for name in ("reshape", "flatten", "squeeze", "expand_dims")},
    "relax.nn.batch_flatten": _reshape,
    "relax.concat": _concat,
    "relax.nn.softmax": _softmax,
    "relax.nn.log_softmax": _softmax,
    "relax.nn.pad": _pad,
    "relax.permute_dims": _permute,
}
