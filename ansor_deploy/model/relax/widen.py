"""Output channels in whole vectors: a convolution of 1000 channels computes 1008.

1000 channels are 125 vectors of 8, which would leave vectors of 16 lanes half empty. Zero weights
are added up to the next whole vector if that saves more than it adds. Elementwise operators and
those over positions carry the surplus channels along; the first operator that would see them gets
them cropped:

    conv(x, w[1000]) ; add(b[1000]) ; relu ; mean ; softmax
    -->
    conv(x, w[1008]) ; add(b[1008]) ; relu ; mean ; crop to 1000 ; softmax
"""

import math
from typing import Any

import numpy as np

from ..._tvm import elements, op_name, relax, shape_of, tvm
from ...target import Target
from .dataflow import Walk, constant_of, rewritten
from .layout import CONVOLUTIONS, ELEMENTWISE, POOLS, REDUCTIONS

# An element has to take at least this many multiply-adds to be worth the copy of a crop.
LONG = 64
# The most vectors after the change, relative to those before it, with which it pays.
FEWER = 0.58


def widen(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """The module with `main` rewritten; unchanged where `main` is not one dataflow block."""
    return rewritten(mod, lambda builder: _Walk(builder, target))


def whole_vectors(channels: int, lanes: int) -> int:
    """How many channels to compute instead: the next multiple of `lanes`, or the same number."""
    wide = math.ceil(channels / lanes) * lanes
    vectors = channels // math.gcd(channels, lanes)
    return wide if wide // lanes <= FEWER * vectors else channels


class _Walk(Walk):
    """The values seen so far: as they are, with surplus channels, or both."""

    def __init__(self, builder: relax.BlockBuilder, target: Target) -> None:
        super().__init__(builder)
        self._lanes = target.vector_bytes // 4
        self._plain: dict[Any, Any] = {}
        self._wide: dict[Any, Any] = {}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value, with surplus channels where it can have them."""
        wide = self._widened(value) if isinstance(value, relax.Call) else None
        if wide is not None:
            self._wide[var] = self.emit(wide)
        else:
            self._plain[var] = self.emit(self.kept(value))

    def plain_tensor(self, expr: relax.Expr) -> relax.Expr:
        """An operand without surplus channels; one that has some is cropped once."""
        if expr in self._wide and expr not in self._plain:
            axis, channels = len(expr.ty.shape) - 1, int(expr.ty.shape[-1])
            crop = relax.op.strided_slice(self._wide[expr], [axis], [0], [channels])
            self._plain[expr] = self.emit(crop, expr)
        return self._plain.get(expr, expr) if isinstance(expr, relax.Var) else expr

    def _widened(self, call: relax.Call) -> relax.Expr | None:
        name = op_name(call)
        if name in CONVOLUTIONS:
            return self._convolution(call)
        if name in ELEMENTWISE:
            return self._elementwise(call)
        if name in POOLS or name in REDUCTIONS:
            return self._over_positions(call)
        return None

    def _convolution(self, call: relax.Call) -> relax.Expr | None:
        data, weight = call.args
        last = call.attrs.data_layout.endswith("C") and int(call.attrs.groups) == 1
        if not last or not isinstance(weight, tvm.ir.GenericConst):
            return None
        *taps, channels = shape_of(weight.ty)
        wide = whole_vectors(channels, self._lanes)
        if wide == channels or math.prod(taps) < LONG:
            return None
        args = [self.plain(data), _padded(weight, wide)]
        return relax.Call(call.op, args, call.attrs, call.ty_args)

    def _elementwise(self, call: relax.Call) -> relax.Expr | None:
        """The call on wide operands of one shape and constants; None for other operands."""
        shape = shape_of(call.ty)
        extents = {int(self._wide[a].ty.shape[-1]) for a in call.args if a in self._wide}
        if len(extents) != 1:
            return None
        args = [self._operand(arg, shape, *extents) for arg in call.args]
        if any(arg is None for arg in args):  # `in` would compare TVM's expressions
            return None
        return relax.Call(call.op, args, call.attrs, call.ty_args)

    def _operand(self, arg: relax.Expr, shape: tuple[int, ...], wide: int) -> relax.Expr | None:
        if arg in self._wide:
            same = shape_of(arg.ty) == shape
            return self._wide[arg] if same else None
        if not isinstance(arg.ty, relax.TensorType):  # a bound of clip
            return arg
        if not isinstance(arg, tvm.ir.GenericConst):
            return None
        own = shape_of(arg.ty)
        return arg if not own or own[-1] == 1 else _padded(arg, wide)

    def _over_positions(self, call: relax.Call) -> relax.Expr | None:
        """Pools and reductions of wide data that keep the channel axis; None for others."""
        (data,) = call.args
        if data not in self._wide:
            return None
        pool = call.op.name in POOLS and call.attrs.layout.endswith("C")
        rank, axes = len(data.ty.shape), getattr(call.attrs, "axis", None)
        if not pool and (axes is None or rank - 1 in {int(axis) % rank for axis in axes}):
            return None
        return relax.Call(call.op, [self._wide[data]], call.attrs, call.ty_args)


def _padded(constant: Any, channels: int) -> Any:
    """A constant with zeros appended along its last axis, up to so many channels."""
    values = elements(constant)
    surplus = [(0, 0)] * (values.ndim - 1) + [(0, channels - values.shape[-1])]
    return constant_of(np.pad(values, surplus))
