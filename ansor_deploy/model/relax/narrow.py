"""Weights of halves: 16 bits each in the library, made float32 where a kernel loads them.

    acc[r, c] += x[r, k] * w[k, c]                  w: float32, which float16 holds as well
    -->
    acc[r, c] += x[r, k] * float32(w[k, c])         w: float16

Other passes turn, pad and cut weights in float32 (`precision.py`), and need to know of no other
type. When kernels are what they will be, those weights are stored again as the model had them.
Nothing that is computed differs by a bit, and what comes from memory is half as much. Where many
tiles load the same, a schedule lets them share what one of them converts (`widened_panels.py`).
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto

from ..._tvm import (
    collect,
    elements,
    has_features,
    op_name,
    relax,
    structural_map,
    tirx,
    tvm,
    tvm_target,
)
from ...system.host import architecture
from ...target import Target
from .dataflow import constant_of

# By ONNX's numbers of them, the types that are computed in float32.
_HALVES = {TensorProto.FLOAT16: np.float16, TensorProto.BFLOAT16: ml_dtypes.bfloat16}
# Elements from which a constant is worth it.
_MANY = 1024


def narrow(mod: tvm.IRModule, types: Collection[int], target: Target) -> tvm.IRModule:
    """The fused module with constants of 16 bits, where those hold all elements of one.

    types: ONNX's, of the constants that the model came with.
    """
    halves = [_HALVES[one] for one in sorted(_convertible(target) & set(types))]
    if not halves:
        return mod
    made = _Functions(mod)
    main = structural_map(mod["main"], (relax.Call, lambda call: _narrowed(call, made, halves)))
    narrowed = made.builder.get()
    narrowed["main"] = main
    return narrowed


def _convertible(target: Target) -> set[int]:
    """The types that a processor makes float32, a vector at once; of bfloat16, by a shift."""
    if target.gpu is not None:
        return set()
    x86 = architecture(target.triple) == "x86_64"
    lacks = x86 and not has_features(str(tvm_target(target)), ("f16c",))
    return _HALVES.keys() - ({TensorProto.FLOAT16} if lacks else set())


class _Functions:
    """A module's functions, and those of halves that were made of them."""

    def __init__(self, mod: tvm.IRModule) -> None:
        self.mod, self.builder = mod, relax.BlockBuilder(mod)
        self._made: dict[Any, Any] = {}

    def taking(self, name: Any, types: Mapping[int, str]) -> Any:
        """The name of the function with parameters, by their places, of these types."""
        key = (name.name_hint, *types.items())
        if key not in self._made:
            made = _loading(self.mod[name], types)
            self._made[key] = self.builder.add_func(made, name.name_hint)
        return self._made[key]


def _narrowed(call: Any, functions: _Functions, halves: Iterable[Any]) -> Any:
    """The call of a kernel on constants that are as narrow as can be."""
    if op_name(call) != "relax.call_tir":
        return call
    name, operands, *rest = call.args
    func, fields = functions.mod[name], list(operands.fields)
    types = {}
    for at, one in enumerate(fields):
        half = _as_half(one, halves) if _is_only_loaded(func, func.params[at]) else None
        if half is not None:
            fields[at], types[at] = half, str(half.ty.dtype)
    if not types:
        return call
    args = [functions.taking(name, types), relax.Tuple(fields), *rest]
    return relax.Call(call.op, args, call.attrs, call.ty_args)


def _as_half(operand: Any, halves: Iterable[Any]) -> relax.Expr | None:
    """A constant of float32 as one of halves; None where it is small, or they would round it."""
    if not isinstance(operand, tvm.ir.GenericConst):
        return None
    values = elements(operand)
    if values.dtype != np.float32 or values.size < _MANY:
        return None
    for half in halves:
        with np.errstate(over="ignore"):
            narrowed = values.astype(half)
        if np.array_equal(narrowed.astype(np.float32).view(np.int32), values.view(np.int32)):
            return constant_of(narrowed)
    return None


def _is_only_loaded(func: tirx.PrimFunc, parameter: Any) -> bool:
    """Whether blocks read a parameter element by element, and nothing takes its address."""
    blocks = collect(func.body, tvm.s_tir.SBlock)
    regions = [one.source.source for block in blocks for one in block.match_buffers]
    arguments = [arg for call in collect(func.body, tvm.ir.Call) for arg in call.args]
    regions += [arg.source for arg in arguments if isinstance(arg, tvm.ir.TensorLoad)]
    return bool(blocks) and not any(one.same_as(parameter) for one in regions)


def _loading(func: tirx.PrimFunc, types: Mapping[int, str]) -> tirx.PrimFunc:
    """The function with parameters of these types, made float32 wherever one is loaded."""
    given = [(func.params[at], kind) for at, kind in types.items()]
    new = {one: tirx.decl_buffer(one.shape, kind, one.name, layout=None) for one, kind in given}
    made = set(new.values())

    def widened(load: Any) -> Any:
        if load.source not in made:
            return load
        return tirx.Cast("float32", tirx.BufferLoad(load.source, load.indices))

    changes = [(tirx.Var, lambda var: new.get(var, var)), (tvm.ir.TensorLoad, widened)]
    return structural_map(func, changes)
