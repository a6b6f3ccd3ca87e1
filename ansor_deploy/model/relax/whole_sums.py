"""Merge integer constants that are added one after another, and keep exact sums in float32.

    s = sums(bytes, weights) ; s - z ; (s - z) + b   -->   s + (b - z)          z, b: constants
    f = sums in float32 ; float32(int32(f) + b)      -->   f + float32(b)       where it is exact

A quantised layer adds constants to its sums for its zero point and for its bias. The sums of bytes
have to wait for these steps, which take longer than the sums in a layer of few channels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._tvm import elements, op_name, relax, shape_of, tirx, tvm
from .dataflow import Renaming, constant_of, rewritten

# Integers up to here are exact in float32.
_EXACT = 1 << 24
_BYTE = 255
_SUMS = "ConvInteger"


def merged(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with `main` rewritten; unchanged where `main` is not one dataflow block."""
    return rewritten(mod, _Walk)


class _Walk(Renaming):
    """The constant that is added to each int32 tensor, and the tensors that are float32 in truth.

    plus: for a sum, (tensor, constant). whole: for a tensor cast from float32, (that one, its
    bound). bounds: the largest sums of bytes in float32. All keys are variables of the new
    function.
    """

    def __init__(self, builder: relax.BlockBuilder) -> None:
        super().__init__(builder)
        self.plus: dict[Any, tuple[Any, np.ndarray]] = {}
        self.whole: dict[Any, tuple[Any, float]] = {}
        self.bounds: dict[Any, float] = {}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value, computed without the steps that can be left out."""
        kept = self.kept(value)
        name = op_name(kept) if isinstance(kept, relax.Call) else ""
        if name in ("relax.add", "relax.subtract") and str(var.ty.dtype) == "int32":
            self.new[var] = self._sum(kept, name, shape_of(var.ty))
        elif name == "relax.astype":
            self.new[var] = self._cast(kept, var)
        else:
            self.new[var] = self.emit(kept)
            if name == "relax.call_tir" and (bound := _bound(kept)) is not None:
                self.bounds[self.new[var]] = bound

    def _sum(self, call: relax.Call, name: str, shape: tuple[int, ...]) -> Any:
        """A sum or difference of int32; constants added one after another become one."""
        left, right = call.args
        if name == "relax.add" and isinstance(left, tvm.ir.GenericConst):
            left, right = right, left
        if not isinstance(right, tvm.ir.GenericConst) or shape_of(left.ty) != shape:
            return self.emit(call)
        origin, before = self.plus.get(left, (left, np.int32(0)))
        sign = 1 if name == "relax.add" else -1
        total = before + np.int32(sign) * elements(right)
        made = self.emit(relax.op.add(origin, constant_of(total)))
        self.plus[made] = origin, total
        return made

    def _cast(self, call: relax.Call, var: relax.Var) -> Any:
        """A cast; none for integers that came from float32 and stay exact there."""
        given, kind = call.args[0], str(var.ty.dtype)
        origin, more = self.plus.get(given, (given, None))
        real, bound = self.whole.get(origin, (None, 0.0))
        if kind == "float32" and real is not None:
            sums = self.emit(self.computed(_as_they_are, real, primfunc_name_hint="whole"))
            if more is None:
                return sums
            if bound + np.abs(more.astype(np.int64)).max(initial=0) <= _EXACT:
                return self.emit(relax.op.add(sums, constant_of(more.astype(np.float32))))
        made = self.emit(call)
        if kind == "int32" and given in self.bounds:
            self.whole[made] = given, self.bounds[given]
        return made


def _as_they_are(sums: Any) -> Any:
    """Floats by way of their bits: no instruction, but a sign that their bits are certain.

    `codegen/passes/same_bytes.py` needs it: it takes the order of other float sums for uncertain.
    """

    def element(*at: Any) -> Any:
        return tirx.reinterpret("float32", tirx.reinterpret("int32", sums(*at)))

    return tvm.te.compute(sums.shape, element, name="whole")


def _bound(call: relax.Call) -> float | None:
    """The largest sum of bytes that a call computes in float32; None for any other call."""
    function, given = call.args[0], call.args[1]
    weight = given.fields[-1] if isinstance(given, relax.Tuple) and len(given.fields) else None
    named = function.name_hint.startswith(_SUMS) and str(call.ty_args[0].dtype) == "float32"
    if not named or not isinstance(weight, tvm.ir.GenericConst):
        return None
    values = np.abs(elements(weight).astype(np.float64))
    return float(values.sum(tuple(range(values.ndim - 1))).max(initial=0) * _BYTE)
