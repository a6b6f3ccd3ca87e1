"""Channels-last layout: convolutions in N..C, with every transpose sunk until it vanishes.

TVM's ConvertLayout stops at clip, knows no 3-D models and puts transposes around operators that it
does not know. This pass walks a model once, in order, and keeps for each value the forms in which
it exists: as the ONNX graph has it (channels first), channels last, or both. An operator that works
in either form is computed in the form at hand. A transpose is emitted only where an operator needs
a form that does not exist, and at most once for a value.

    conv(x, w) ; clip ; conv   -->   transpose(x) ; conv_nhwc ; clip ; conv_nhwc ; transpose

`RULES` has one rule for each operator: how to compute it channels last, or None if it is not.
Operators on constants alone (reshaped biases, transposed weights) are computed here in NumPy: TVM's
FoldConstant compiles and runs a function for each, which takes seconds for a large model.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..._tvm import relax, shape_of, tirx, tvm
from ...target import Target
from . import few_channels, resizing
from .constant_gathers import is_table
from .dataflow import constant_of, rewritten
from .forms import Forms, Rule, Value, axis_in_last, in_order, rank_of, to_last
from .transposed import SPATIAL, transposed_convolution


def channels_last(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """The module with `main` rewritten; unchanged where `main` is not one dataflow block."""
    return rewritten(mod, lambda builder: Forms(builder, target, RULES))


def _of_last(rule: Callable[[Forms, Any, Any], Value | None]) -> Rule:
    """A rule that applies if the operand exists channels last, and gets it in that form."""

    def ruled(walk: Forms, call: Any) -> Value | None:
        last = walk.value(call.args[0]).last
        return None if last is None else rule(walk, call, last)

    return ruled


def _given(attrs: Any, names: str) -> dict[str, Any]:
    return {name: getattr(attrs, name) for name in names.split()}


def _named(call: Any, ops: Any) -> Callable[..., Any]:
    """TVM's function that makes calls of the same operator."""
    return getattr(ops, call.op.name.rsplit(".", 1)[1])


def _convolution(walk: Forms, call: Any) -> Value | None:
    weight, attrs, rank = walk.constant(call.args[1]), call.attrs, rank_of(call)
    if weight is None or not attrs.data_layout.startswith("NC"):
        return None
    first, given = walk.value(call.args[0]).first, _given(attrs, "strides padding dilation groups")
    transposed = call.op.name.endswith("_transpose")
    if not (transposed or walk.has_last(call.args[0])) and few_channels.is_few(first, attrs):
        kernel, dtype = in_order(weight, [1, 2, 3, 0]), attrs.out_dtype or None
        return Value(last=walk.emit(few_channels.convolution(first, kernel, given, dtype)))
    data, spatial = walk.last(call.args[0]), SPATIAL[rank]
    if transposed:
        made = transposed_convolution(
            walk, data, weight, attrs, list(shape_of(call.ty)), walk.lanes
        )
        return None if made is None else Value(last=made)
    if 1 < attrs.groups == shape_of(data.ty)[-1] < len(weight):
        # Copying a channel for its results takes one gather; reading it there takes one a tap.
        data = walk.emit(relax.op.repeat(data, len(weight) // int(attrs.groups), rank - 1))
        given["groups"] = len(weight)
    done = _named(call, relax.op.nn)(
        data,
        in_order(weight, [*range(2, rank), 1, 0]),
        **given,
        data_layout=f"N{spatial}C",
        kernel_layout=f"{spatial}IO",
        out_dtype=attrs.out_dtype or None,
    )
    return Value(last=walk.emit(done))


@_of_last
def _pool(walk: Forms, call: Any, last: Any) -> Value:
    names = "output_size" if "adaptive" in call.op.name else _POOLING
    layout = f"N{SPATIAL[rank_of(call)]}C"
    pool = _named(call, relax.op.nn)
    return Value(last=walk.emit(pool(last, **_given(call.attrs, names), layout=layout)))


def _elementwise(walk: Forms, call: Any) -> Value | None:
    if (before := _before_view(walk, call)) is not None:
        return before
    rank = rank_of(call)
    tensors = [arg for arg in call.args if rank_of(arg)]
    if not any(walk.has_last(arg) for arg in tensors):
        return None
    if any(rank_of(arg) != rank and walk.constant(arg) is None for arg in tensors):
        return None
    args = [_operand_last(walk, arg, rank) for arg in call.args]
    return Value(last=walk.emit(relax.Call(call.op, args, call.attrs, call.ty_args)))


def _before_view(walk: Forms, call: Any) -> Value | None:
    """An elementwise operator computed before its operands' reshape, to fuse with their maker.

    None unless all operands are numbers, or views with the same shapes in the same form.
    """
    args, views = [], set()
    for arg in call.args:
        constant = walk.constant(arg)
        if not rank_of(arg) or (constant is not None and constant.size == 1):
            args.append(walk.plain(arg))
            continue
        value = walk.value(arg)
        form = value.first if value.last is None else value.last
        if (of := walk.viewed(form)) is None:
            return None
        args.append(of)
        views.add((shape_of(form.ty), shape_of(of.ty), value.last is None))
    if len(views) != 1:
        return None
    ((shape, _, first),) = views
    if len(shape) != rank_of(call):  # a constant number may have more axes
        return None
    made = walk.emit(relax.Call(call.op, args, call.attrs, call.ty_args))
    view = walk.view(made, list(shape))
    return Value(first=view) if first else Value(last=view)


def _operand_last(walk: Forms, arg: Any, rank: int) -> Any:
    """An operand channels last; a broadcast constant first gets the rank of the result."""
    constant = walk.constant(arg)
    if constant is not None and 0 < constant.ndim < rank:
        constant = constant.reshape((1,) * (rank - constant.ndim) + constant.shape)
        return in_order(constant, to_last(rank))
    return walk.last(arg) if rank_of(arg) == rank else walk.plain(arg)


def _concat(walk: Forms, call: Any) -> Value | None:
    if not isinstance(call.args[0], relax.Tuple):
        return None
    fields, rank = list(call.args[0].fields), rank_of(call)
    known = [walk.has_last(f) or walk.constant(f) is not None for f in fields]
    if rank < 3 or not all(known) or not any(walk.has_last(f) for f in fields):
        return None
    axis = axis_in_last(int(call.attrs.axis), rank)
    return Value(last=walk.emit(relax.op.concat([walk.last(f) for f in fields], axis)))


@_of_last
def _reduce(walk: Forms, call: Any, last: Any) -> Value | None:
    rank = rank_of(last)
    if call.attrs.axis is None:
        return None
    reduced = {int(axis) % rank for axis in call.attrs.axis}
    reduce = _named(call, relax.op)
    moved = sorted(axis_in_last(axis, rank) for axis in reduced)
    if call.attrs.keepdims:
        return Value(last=walk.emit(reduce(last, moved, keepdims=True)))
    kept = [axis for axis in to_last(rank) if axis not in reduced]
    if kept != sorted(kept):
        return None
    return Value(first=walk.emit(reduce(last, moved, keepdims=False)))


@_of_last
def _softmax(walk: Forms, call: Any, last: Any) -> Value:
    axis = axis_in_last(int(call.attrs.axis), rank_of(call))
    return Value(last=walk.emit(_named(call, relax.op.nn)(last, axis)))


@_of_last
def _pad(walk: Forms, call: Any, last: Any) -> Value:
    widths, rank = [int(w) for w in call.attrs.pad_width], rank_of(call)
    moved = [w for axis in to_last(rank) for w in widths[2 * axis : 2 * axis + 2]]
    padded = relax.op.nn.pad(last, moved, call.attrs.pad_mode, float(call.attrs.pad_value))
    return Value(last=walk.emit(padded))


@_of_last
def _slice(walk: Forms, call: Any, last: Any) -> Value:
    _, axes, *bounds = call.args
    moved = [axis_in_last(int(axis), rank_of(call)) for axis in axes.fields]
    begins, ends, *steps = ([int(one) for one in bound.fields] for bound in bounds)
    inbound = bool(call.attrs.assume_inbound)
    sliced = relax.op.strided_slice(last, moved, begins, ends, *steps, assume_inbound=inbound)
    return Value(last=walk.emit(sliced))


@_of_last
def _split(walk: Forms, call: Any, last: Any) -> Value:
    parts, axis = call.attrs.indices_or_sections, axis_in_last(int(call.attrs.axis), rank_of(last))
    counted = isinstance(parts, (int, tirx.IntImm))
    sections = int(parts) if counted else [int(one) for one in parts]
    return Value(last=walk.emit(relax.op.split(last, sections, axis)))


@_of_last
def _resize(walk: Forms, call: Any, last: Any) -> Value | None:
    if call.attrs.layout != "NCHW":
        return None
    made = walk.emit(resizing.resized(call, last, "NHWC"))
    if resizing.enlarges(call):
        walk.enlarged[made] = call
    return Value(last=made)


def _take(walk: Forms, call: Any) -> Value | None:
    """A look-up along one axis, as in resizing, which keeps the rank; or of bytes in a table."""
    indices, axis, last = call.args[1], call.attrs.axis, walk.value(call.args[0]).last
    if is_table(call) and walk.has_last(indices):
        table, places = walk.plain(call.args[0]), walk.last(indices)
        return Value(last=walk.emit(relax.op.take(table, places, axis, mode="fast")))
    if last is None or axis is None or rank_of(indices) != 1:
        return None
    moved = axis_in_last(int(axis), rank_of(call))
    taken = relax.op.take(last, walk.plain(indices), moved, mode=str(call.attrs.mode))
    return Value(last=walk.emit(taken))


def _reshape(walk: Forms, call: Any) -> Value | None:
    """A reshape: the order of elements stays in both forms where axes of size one come or go.

    It also stays where rows and columns of an image become one axis, as tokens, or two again, and
    where channels become two axes or one.
    """
    constant, value = walk.constant(call.args[0]), walk.value(call.args[0])
    shape, made = shape_of(call.args[0].ty), shape_of(call.ty)
    if constant is not None:
        return Value(first=constant_of(constant.reshape(made)))
    if value.last is None:
        return _of_channels(walk, value, shape, made)
    if not (shape[1] > 1 and max(shape[2:]) > 1):
        return Value(first=walk.emit(relax.op.reshape(value.last, made)))
    if len(made) < 3 or made[:2] != shape[:2]:
        return _of_channels(walk, value, shape, made)
    return Value(last=walk.view(value.last, _shape_in_last(made)))


def _shape_in_last(shape: Sequence[int]) -> list[int]:
    return [shape[axis] for axis in to_last(len(shape))]


def _of_channels(
    walk: Forms, value: Value, shape: tuple[int, ...], made: tuple[int, ...]
) -> Value | None:
    """A reshape that makes two axes of an image's channels or one of two; None for others."""
    if value.split is not None and made == (shape[0], shape[1] * shape[2], *shape[3:]):
        return Value(last=walk.emit(relax.op.reshape(value.split, _shape_in_last(made))))
    splits = len(made) > 3 and shape == (made[0], math.prod(made[1:3]), *made[3:])
    if value.last is None or value.first is not None or not splits:
        return None
    return Value(split=walk.emit(relax.op.reshape(value.last, [made[0], *made[3:], *made[1:3]])))


def _permute(walk: Forms, call: Any) -> Value | None:
    constant, last = walk.constant(call.args[0]), walk.value(call.args[0]).last
    rank = rank_of(call)
    axes = [int(a) % rank for a in call.attrs.axes or reversed(range(rank))]
    if constant is not None:
        return Value(first=in_order(constant, axes))
    if (split := walk.value(call.args[0]).split) is not None:
        swapped = [*range(rank - 2), rank - 1, rank - 2]
        shuffles = axes == [0, 2, 1, *range(3, rank)]
        return Value(split=walk.emit(relax.op.permute_dims(split, swapped))) if shuffles else None
    if last is None:
        if rank > 3 and axes == to_last(rank):
            return Value(first=walk.last(call.args[0]))  # transposed once for all readers
        # With three axes the order for both directions is the same; tokens are no image. But sums
        # of integers become bytes by functions of each element, which are part of their kernel.
        turns = rank > 3 or (rank == 3 and str(call.ty.dtype) == "int32")
        to_first = turns and axes == [0, rank - 1, *range(1, rank - 1)]
        return Value(last=walk.plain(call.args[0])) if to_first else None
    composed = [axis_in_last(axis, rank) for axis in axes]
    if composed == list(range(rank)):
        return Value(first=last)
    return Value(first=walk.emit(relax.op.permute_dims(last, composed)))


_UNARY = "abs ceil clip cos erf exp floor isnan log logical_not negative round rsqrt sigmoid sign"
_UNARY += " sin sqrt square tanh acos acosh asin asinh atan atanh cosh sinh tan"
_BINARY = "add subtract multiply divide maximum minimum power"
_COMPARING = "equal greater greater_equal less less_equal logical_and logical_or not_equal"
_NN_UNARY = "relu relu6 leakyrelu gelu gelu_tanh selu silu softplus"
_POOLING = "pool_size strides padding dilation ceil_mode count_include_pad"
_REDUCE = "mean sum max min variance"

CONVOLUTIONS = {f"relax.nn.conv{n}d" for n in (1, 2, 3)}
POOLS = {f"relax.nn.{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_avg") for n in (1, 2, 3)}
REDUCTIONS = {f"relax.{name}" for name in _REDUCE.split()}
ELEMENTWISE = {f"relax.{name}" for name in f"{_UNARY} {_BINARY} {_COMPARING} astype where".split()}
ELEMENTWISE |= {f"relax.nn.{name}" for name in _NN_UNARY.split()}

RULES: dict[str, Rule] = {
    **dict.fromkeys(CONVOLUTIONS, _convolution),
    **{f"{name}_transpose": _convolution for name in CONVOLUTIONS},
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
    "relax.strided_slice": _slice,
    "relax.split": _split,
    "relax.take": _take,
    "relax.image.resize2d": _resize,
}
