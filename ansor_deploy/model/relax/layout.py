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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._tvm import elements, op_name, relax, shape_of, tirx, tvm
from ...target import Target
from . import few_channels, resizing
from .constant_gathers import is_table
from .dataflow import Walk, constant_of, rewritten, turned
from .transposed import SPATIAL, transposed_convolution


def channels_last(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """The module with `main` rewritten; unchanged where `main` is not one dataflow block."""
    return rewritten(mod, lambda builder: _Walk(builder, target))


@dataclass
class Value:
    """A tensor in the forms in which it exists: channels first, channels last, or both."""

    first: Any = None
    last: Any = None


class _Walk(Walk):
    """The values seen so far, each in the forms in which it exists.

    lanes: of float32 vectors. enlarged: the call of the old function that enlarged an image.
    """

    def __init__(self, builder: relax.BlockBuilder, target: Target) -> None:
        super().__init__(builder)
        self.lanes = target.vector_bytes // 4
        self._values: dict[Any, Value] = {}
        self._views: dict[Any, Any] = {}
        self.enlarged: dict[Any, Any] = {}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` means the value: computed by its operator's rule, or as it stands."""
        if isinstance(value, relax.Var):
            self._values[var] = self.value(value)
            return
        if isinstance(value, relax.TupleGetItem):
            ruled = self._part(value)
        else:
            name = op_name(value)
            ruled = RULES[name](self, value) if name in RULES else None
        self._values[var] = ruled or Value(first=self.emit(self.kept(value)))

    def _part(self, item: Any) -> Value | None:
        """A field of a tuple that exists channels last; None for other tuples."""
        whole = self.value(item.tuple_value).last
        if whole is None:
            return None
        return Value(last=self.emit(relax.TupleGetItem(whole, item.index)))

    def value(self, expr: relax.Expr) -> Value:
        """The forms of an operand of the old function."""
        if isinstance(expr, relax.Var):
            return self._values.setdefault(expr, Value(first=expr))
        return Value(first=expr)

    def constant(self, expr: relax.Expr) -> np.ndarray | None:
        """The operand's elements if they are known; else None."""
        first = self.value(expr).first
        return elements(first) if isinstance(first, tvm.ir.GenericConst) else None

    def has_last(self, expr: relax.Expr) -> bool:
        """Whether the operand exists channels last already."""
        return self.value(expr).last is not None

    def plain_tensor(self, expr: relax.Expr) -> relax.Expr:
        """The operand channels first, transposed if necessary."""
        value = self.value(expr)
        if value.first is None:
            value.first = self.emit(self._first_of(value.last), expr)
        return value.first

    def _first_of(self, last: relax.Expr) -> relax.Expr:
        """A tensor channels first; for an enlarged image, the small one is transposed."""
        if (call := self.enlarged.get(last)) is not None:
            return resizing.resized(call, self.plain_tensor(call.args[0]), "NCHW")
        rank = _rank(last)
        return turned(last, [0, rank - 1, *range(1, rank - 1)])

    def view(self, of: relax.Expr, shape: list[int]) -> relax.Expr:
        """A reshaped tensor; elementwise operators on it may be computed before the reshape."""
        made = self.emit(relax.op.reshape(of, shape))
        self._views[made] = of
        return made

    def viewed(self, expr: relax.Expr) -> relax.Expr | None:
        """The tensor that this one is a view of; None if it is no view."""
        return self._views.get(expr) if isinstance(expr, relax.Var) else None

    def last(self, expr: relax.Expr) -> relax.Expr:
        """The operand channels last, transposed if necessary."""
        value = self.value(expr)
        if value.last is None:
            axes, constant = _to_last(_rank(value.first)), self.constant(expr)
            moved = None if constant is None else _moved(constant, axes)
            value.last = moved or self.emit(turned(value.first, axes), expr)
        return value.last


Rule = Callable[[_Walk, Any], "Value | None"]


def _of_last(rule: Callable[[_Walk, Any, Any], Value | None]) -> Rule:
    """A rule that applies if the operand exists channels last, and gets it in that form."""

    def ruled(walk: _Walk, call: Any) -> Value | None:
        last = walk.value(call.args[0]).last
        return None if last is None else rule(walk, call, last)

    return ruled


def _to_last(rank: int) -> list[int]:
    """The order of axes that takes N C spatial to N spatial C."""
    return [0, *range(2, rank), 1]


def _moved(constant: np.ndarray, axes: list[int]) -> relax.Expr:
    return constant_of(np.ascontiguousarray(constant.transpose(axes)))


def _given(attrs: Any, names: str) -> dict[str, Any]:
    return {name: getattr(attrs, name) for name in names.split()}


def _named(call: Any, ops: Any) -> Callable[..., Any]:
    """TVM's function that makes calls of the same operator."""
    return getattr(ops, call.op.name.rsplit(".", 1)[1])


def _rank(expr: Any) -> int:
    return len(expr.ty.shape) if isinstance(expr.ty, relax.TensorType) else 0


def _axis_in_last(axis: int, rank: int) -> int:
    return _to_last(rank).index(axis % rank)


def _convolution(walk: _Walk, call: Any) -> Value | None:
    weight, attrs, rank = walk.constant(call.args[1]), call.attrs, _rank(call)
    if weight is None or not attrs.data_layout.startswith("NC"):
        return None
    first, given = walk.value(call.args[0]).first, _given(attrs, "strides padding dilation groups")
    transposed = call.op.name.endswith("_transpose")
    if not (transposed or walk.has_last(call.args[0])) and few_channels.is_few(first, attrs):
        kernel, dtype = _moved(weight, [1, 2, 3, 0]), attrs.out_dtype or None
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
        _moved(weight, [*range(2, rank), 1, 0]),
        **given,
        data_layout=f"N{spatial}C",
        kernel_layout=f"{spatial}IO",
        out_dtype=attrs.out_dtype or None,
    )
    return Value(last=walk.emit(done))


@_of_last
def _pool(walk: _Walk, call: Any, last: Any) -> Value:
    names = "output_size" if "adaptive" in call.op.name else _POOLING
    layout = f"N{SPATIAL[_rank(call)]}C"
    pool = _named(call, relax.op.nn)
    return Value(last=walk.emit(pool(last, **_given(call.attrs, names), layout=layout)))


def _elementwise(walk: _Walk, call: Any) -> Value | None:
    if (before := _before_view(walk, call)) is not None:
        return before
    rank = _rank(call)
    tensors = [arg for arg in call.args if _rank(arg)]
    if not any(walk.has_last(arg) for arg in tensors):
        return None
    if any(_rank(arg) != rank and walk.constant(arg) is None for arg in tensors):
        return None
    args = [_operand_last(walk, arg, rank) for arg in call.args]
    return Value(last=walk.emit(relax.Call(call.op, args, call.attrs, call.ty_args)))


def _before_view(walk: _Walk, call: Any) -> Value | None:
    """An elementwise operator computed before its operands' reshape, to fuse with their maker.

    None unless all operands are numbers, or views with the same shapes in the same form.
    """
    args, views = [], set()
    for arg in call.args:
        constant = walk.constant(arg)
        if not _rank(arg) or (constant is not None and constant.size == 1):
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
    if len(shape) != _rank(call):  # a constant number may have more axes
        return None
    made = walk.emit(relax.Call(call.op, args, call.attrs, call.ty_args))
    view = walk.view(made, list(shape))
    return Value(first=view) if first else Value(last=view)


def _operand_last(walk: _Walk, arg: Any, rank: int) -> Any:
    """An operand channels last; a broadcast constant first gets the rank of the result."""
    constant = walk.constant(arg)
    if constant is not None and 0 < constant.ndim < rank:
        constant = constant.reshape((1,) * (rank - constant.ndim) + constant.shape)
        return _moved(constant, _to_last(rank))
    return walk.last(arg) if _rank(arg) == rank else walk.plain(arg)


def _concat(walk: _Walk, call: Any) -> Value | None:
    if not isinstance(call.args[0], relax.Tuple):
        return None
    fields, rank = list(call.args[0].fields), _rank(call)
    known = [walk.has_last(f) or walk.constant(f) is not None for f in fields]
    if rank < 3 or not all(known) or not any(walk.has_last(f) for f in fields):
        return None
    axis = _axis_in_last(int(call.attrs.axis), rank)
    return Value(last=walk.emit(relax.op.concat([walk.last(f) for f in fields], axis)))


@_of_last
def _reduce(walk: _Walk, call: Any, last: Any) -> Value | None:
    rank = _rank(last)
    if call.attrs.axis is None:
        return None
    reduced = {int(axis) % rank for axis in call.attrs.axis}
    reduce = _named(call, relax.op)
    moved = sorted(_axis_in_last(axis, rank) for axis in reduced)
    if call.attrs.keepdims:
        return Value(last=walk.emit(reduce(last, moved, keepdims=True)))
    kept = [axis for axis in _to_last(rank) if axis not in reduced]
    if kept != sorted(kept):
        return None
    return Value(first=walk.emit(reduce(last, moved, keepdims=False)))


@_of_last
def _softmax(walk: _Walk, call: Any, last: Any) -> Value:
    axis = _axis_in_last(int(call.attrs.axis), _rank(call))
    return Value(last=walk.emit(_named(call, relax.op.nn)(last, axis)))


@_of_last
def _pad(walk: _Walk, call: Any, last: Any) -> Value:
    widths, rank = [int(w) for w in call.attrs.pad_width], _rank(call)
    moved = [w for axis in _to_last(rank) for w in widths[2 * axis : 2 * axis + 2]]
    padded = relax.op.nn.pad(last, moved, call.attrs.pad_mode, float(call.attrs.pad_value))
    return Value(last=walk.emit(padded))


@_of_last
def _slice(walk: _Walk, call: Any, last: Any) -> Value:
    _, axes, *bounds = call.args
    moved = [_axis_in_last(int(axis), _rank(call)) for axis in axes.fields]
    begins, ends, *steps = ([int(one) for one in bound.fields] for bound in bounds)
    inbound = bool(call.attrs.assume_inbound)
    sliced = relax.op.strided_slice(last, moved, begins, ends, *steps, assume_inbound=inbound)
    return Value(last=walk.emit(sliced))


@_of_last
def _split(walk: _Walk, call: Any, last: Any) -> Value:
    parts, axis = call.attrs.indices_or_sections, _axis_in_last(int(call.attrs.axis), _rank(last))
    counted = isinstance(parts, (int, tirx.IntImm))
    sections = int(parts) if counted else [int(one) for one in parts]
    return Value(last=walk.emit(relax.op.split(last, sections, axis)))


@_of_last
def _resize(walk: _Walk, call: Any, last: Any) -> Value | None:
    if call.attrs.layout != "NCHW":
        return None
    made = walk.emit(resizing.resized(call, last, "NHWC"))
    if resizing.enlarges(call):
        walk.enlarged[made] = call
    return Value(last=made)


def _take(walk: _Walk, call: Any) -> Value | None:
    """A look-up along one axis, as in resizing, which keeps the rank; or of bytes in a table."""
    indices, axis, last = call.args[1], call.attrs.axis, walk.value(call.args[0]).last
    if is_table(call) and walk.has_last(indices):
        table, places = walk.plain(call.args[0]), walk.last(indices)
        return Value(last=walk.emit(relax.op.take(table, places, axis, mode="fast")))
    if last is None or axis is None or _rank(indices) != 1:
        return None
    moved = _axis_in_last(int(axis), _rank(call))
    taken = relax.op.take(last, walk.plain(indices), moved, mode=str(call.attrs.mode))
    return Value(last=walk.emit(taken))


def _reshape(walk: _Walk, call: Any) -> Value | None:
    """A reshape: the order of elements stays in both forms where axes of size one come or go.

    It also stays where rows and columns of an image become one axis, as tokens, or two again.
    """
    constant, value = walk.constant(call.args[0]), walk.value(call.args[0])
    shape, made = shape_of(call.args[0].ty), shape_of(call.ty)
    if constant is not None:
        return Value(first=constant_of(constant.reshape(made)))
    if value.last is None:
        return None
    if not (shape[1] > 1 and max(shape[2:]) > 1):
        return Value(first=walk.emit(relax.op.reshape(value.last, made)))
    if len(made) < 3 or made[:2] != shape[:2]:
        return None
    return Value(last=walk.view(value.last, [made[0], *made[2:], made[1]]))


def _permute(walk: _Walk, call: Any) -> Value | None:
    constant, last = walk.constant(call.args[0]), walk.value(call.args[0]).last
    rank = _rank(call)
    axes = [int(a) % rank for a in call.attrs.axes or reversed(range(rank))]
    if constant is not None:
        return Value(first=_moved(constant, axes))
    if last is None:
        if rank > 3 and axes == _to_last(rank):
            return Value(first=walk.last(call.args[0]))  # transposed once for all readers
        # With three axes the order for both directions is the same; tokens are no image.
        to_first = rank > 3 and axes == [0, rank - 1, *range(1, rank - 1)]
        return Value(last=walk.plain(call.args[0])) if to_first else None
    composed = [_axis_in_last(axis, rank) for axis in axes]
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
