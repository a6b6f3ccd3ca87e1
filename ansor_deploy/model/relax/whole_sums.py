"""Whole numbers that are added one after the other: as one, and in the type that they come in.

    s = sums(bytes, weights) ; s - z ; (s - z) + b   -->   s + (b - z)          z, b: constants
    f = sums in float32 ; float32(int32(f) + b)      -->   f + float32(b)       where it is exact

What a quantised layer adds to its sums comes from its zero point and from its bias. Sums of bytes
wait for what follows them: of a layer of few channels it takes longer than the sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._tvm import elements, op_name, relax, shape_of, tirx, tvm
from .dataflow import Renaming, constant_of, rewritten

# Whole numbers up to here are exact in float32.
_EXACT = 1 << 24
_BYTE = 255
_SUMS = "ConvInteger"


def merged(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with `main` rewritten; unchanged where `main` is not one dataflow block."""
    return rewritten(mod, _Walk)


class _Walk(Renaming):
    """What is added to each tensor of int32, and which of them are float32 in truth.

    plus: (tensor, constant) of what is their sum. whole: (float32, bound) of what is cast from it.
    bounds: the largest sums of bytes in float32. All by variables of the new function.
    """

    def __init__(self, builder: relax.BlockBuilder) -> None:
        super().__init__(builder)
        self.plus: dict[Any, tuple[Any, np.ndarray]] = {}
        self.whole: dict[Any, tuple[Any, float]] = {}
        self.bounds: dict[Any, float] = {}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Note that `var` is this value, less what can be left out on the way to it."""
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
        """A sum, or a difference, of int32: with a constant, all that was added before with it."""
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
        """A cast; of what was whole in float32, and stays exact there, none."""
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
    """Floats by way of their bits, which is no instruction, but says that no bit of them is open.

    `codegen/passes/same_bytes.py` asks for it: floats that are added up are else of no certain
    order.
    """

    def element(*at: Any) -> Any:
        return tirx.reinterpret("float32", tirx.reinterpret("int32", sums(*at)))

    return tvm.te.compute(sums.shape, element, name="whole")


def _bound(call: relax.Call) -> float | None:
    """The largest sum of bytes that a call computes in float32; None of any other call."""
    function, given = call.args[0], call.args[1]
    weight = given.fields[-1] if isinstance(given, relax.Tuple) and len(given.fields) else None
    named = function.name_hint.startswith(_SUMS) and str(call.ty_args[0].dtype) == "float32"
    if not named or not isinstance(weight, tvm.ir.GenericConst):
        return None
    values = np.abs(elements(weight).astype(np.float64))
    return float(values.sum(tuple(range(values.ndim - 1))).max(initial=0) * _BYTE)
