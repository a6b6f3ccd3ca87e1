"""16-bit weights: 16 bits each in the library, made float32 where a kernel loads them.

    acc[r, c] += x[r, k] * w[k, c]                  w: float32, which float16 holds as well
    -->
    acc[r, c] += x[r, k] * float32(w[k, c])         w: float16

Other passes transpose, pad and cut weights in float32 (`precision.py`) and need not know of other
types. When the kernels are final, those weights are stored again as the model had them. No result
changes by a bit, and half as much is read from memory. Block-quantised weights take a byte each
(`blockwise.py`). Where many tiles load the same weights, a schedule lets them share what one of
them converts (`widened_panels.py`).
"""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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
from ...space.block_view import BlockView, blocks
from ...space.winograd import Convolution
from ...system.host import architecture
from ...target import Target
from .blockwise import BlockwiseWeights
from .channelwise import Channelwise
from .dataflow import constant_of

# The 16-bit types that are computed in float32, by ONNX's numbers.
_HALVES = {TensorProto.FLOAT16: np.float16, TensorProto.BFLOAT16: ml_dtypes.bfloat16}
# The least number of elements of a constant that is worth it.
_MANY = 1024
# The widest window that Winograd's algorithm is used for.
_WIDEST = 5


def narrow(
    mod: tvm.IRModule, types: Collection[int], blocks: BlockwiseWeights, target: Target
) -> tvm.IRModule:
    """The fused module, with constants in shorter types that hold all their elements exactly.

    types: ONNX's types of the constants that the model came with. blocks: its block-quantised
    weights.
    """
    if target.gpu is not None:
        return mod
    halves = [_HALVES[one] for one in sorted(_convertible(target) & set(types))]
    made = _Functions(mod, _Forms(halves, blocks))
    main = structural_map(mod["main"], (relax.Call, lambda call: _narrowed(call, made)))
    narrowed = made.builder.get()
    narrowed["main"] = main
    return narrowed


def _convertible(target: Target) -> set[int]:
    """The types that a processor converts to float32 a vector at a time; bfloat16 by a shift."""
    x86 = architecture(target.triple) == "x86_64"
    lacks = x86 and not has_features(str(tvm_target(target)), ("f16c",))
    return _HALVES.keys() - ({TensorProto.FLOAT16} if lacks else set())


class Short(Protocol):
    """A short form of a constant, as it is stored."""

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The constants that are stored in its place."""

    @property
    def key(self) -> Hashable:
        """A key that is equal for forms whose elements are loaded by the same code."""

    def loaded(self, buffers: Sequence[Any], indices: Sequence[Any]) -> Any:
        """An element as float32."""


@dataclass(frozen=True, eq=False)
class _Half:
    """A constant of 16 bits."""

    array: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return (self.array,)

    @property
    def key(self) -> Hashable:
        return str(self.array.dtype)

    def loaded(self, buffers: Sequence[Any], indices: Sequence[Any]) -> Any:
        return tirx.Cast("float32", tirx.BufferLoad(buffers[0], indices))


@dataclass(frozen=True)
class _Forms:
    """The forms in which constants may be stored, the shortest first."""

    halves: Sequence[Any]
    blocks: BlockwiseWeights

    def of(self, operand: Any, results: int) -> Short | None:
        """The form of a float32 constant; None if it is small, or every short form would round it.

        results: the number of elements in the results of its kernel.
        """
        if not isinstance(operand, tvm.ir.GenericConst):
            return None
        values = elements(operand)
        if values.dtype != np.float32 or values.size < _MANY:
            return None
        return self.blocks.of(values, results) or self._half(values)

    def _half(self, values: np.ndarray) -> _Half | None:
        for half in self.halves:
            with np.errstate(over="ignore"):
                narrowed = values.astype(half)
            if np.array_equal(narrowed.astype(np.float32).view(np.int32), values.view(np.int32)):
                return _Half(narrowed)
        return None


class _Functions:
    """A module's functions, and those made from them that take shorter constants."""

    def __init__(self, mod: tvm.IRModule, forms: _Forms) -> None:
        self.mod, self.forms, self.builder = mod, forms, relax.BlockBuilder(mod)
        self._made: dict[Any, Any] = {}

    def taking(self, name: Any, short: Mapping[int, Short]) -> Any:
        """The name of the function whose parameters at these places have these forms."""
        key = (name.name_hint, *((at, one.key) for at, one in short.items()))
        if key not in self._made:
            made = _loading(self.mod[name], short)
            self._made[key] = self.builder.add_func(made, name.name_hint)
        return self._made[key]


def _narrowed(call: Any, functions: _Functions) -> Any:
    """The call of a kernel with its constants in the shortest forms."""
    if op_name(call) != "relax.call_tir":
        return call
    name, operands, *rest = call.args
    func, given = functions.mod[name], list(operands.fields)
    loaded = [at for at in range(len(given)) if _is_only_loaded(func, func.params[at])]
    results = sum(math.prod(map(int, one.shape)) for one in _made(call))
    found = {at: functions.forms.of(given[at], results) for at in loaded}
    short = {at: one for at, one in found.items() if one is not None}
    if any(isinstance(one, Channelwise) for one in short.values()) and _may_be_transformed(func):
        short = {}
    if not short:
        return call
    parts = [
        map(constant_of, short[at].arrays) if at in short else [one] for at, one in enumerate(given)
    ]
    fields = [part for several in parts for part in several]
    args = [functions.taking(name, short), relax.Tuple(fields), *rest]
    return relax.Call(call.op, args, call.attrs, call.ty_args)


def _may_be_transformed(func: tirx.PrimFunc) -> bool:
    """Whether Winograd's algorithm may compute it, with transformed weights in the library."""
    sch = tvm.s_tir.Schedule(func, debug_mask="none")
    found = [Convolution.of(BlockView(sch, block)) for block in blocks(sch)]
    return any(1 < max(one.windows) <= _WIDEST for one in found if one is not None)


def _made(call: Any) -> list[Any]:
    """The types of a call's results."""
    (made,) = call.ty_args
    return list(made.fields) if isinstance(made, relax.TupleType) else [made]


def _is_only_loaded(func: tirx.PrimFunc, parameter: Any) -> bool:
    """Whether blocks read a parameter element by element, and nothing takes its address."""
    blocks = collect(func.body, tvm.s_tir.SBlock)
    regions = [one.source.source for block in blocks for one in block.match_buffers]
    arguments = [arg for call in collect(func.body, tvm.ir.Call) for arg in call.args]
    regions += [arg.source for arg in arguments if isinstance(arg, tvm.ir.TensorLoad)]
    return bool(blocks) and not any(one.same_as(parameter) for one in regions)


def _loading(func: tirx.PrimFunc, short: Mapping[int, Short]) -> tirx.PrimFunc:
    """The function with parameters in these forms, made float32 wherever an element is loaded."""
    given = {at: (one, _buffers(func.params[at], one)) for at, one in short.items()}
    first = {func.params[at]: buffers[0] for at, (_, buffers) in given.items()}
    made = {buffers[0]: (one, buffers) for one, buffers in given.values()}

    def widened(load: Any) -> Any:
        if load.source not in made:
            return load
        one, buffers = made[load.source]
        return one.loaded(buffers, load.indices)

    changes = [
        (tirx.Var, lambda var: first.get(var, var)),
        (tvm.ir.TensorLoad, widened),
        (tvm.s_tir.SBlock, lambda block: _reading(block, made)),
    ]
    params = [given[at][1] if at in given else [one] for at, one in enumerate(func.params)]
    body = structural_map(func.body, changes)
    return tirx.PrimFunc(
        [one for several in params for one in several], body, func.ret_type, func.attrs
    )


def _buffers(parameter: Any, short: Short) -> list[Any]:
    """The parameters that replace one."""
    return [
        tirx.decl_buffer(
            [tirx.const(size, "int64") for size in array.shape],
            str(array.dtype),
            f"{parameter.name}{at or ''}",
            layout=None,
        )
        for at, array in enumerate(short.arrays)
    ]


def _reading(block: Any, made: Mapping[Any, tuple[Short, list[Any]]]) -> Any:
    """A block that declares reads of all arrays of a short form, not only of the first."""
    known = {region.source: region for region in block.reads}
    others = {o: known[one] for one, (_, rest) in made.items() if one in known for o in rest[1:]}
    loads = [one for one in collect(block.body, tvm.ir.TensorLoad) if one.source in others]
    if not loads:
        return block
    reads = [*block.reads, *(_element(one, others[one.source].ty) for one in loads)]
    fields = (block.name_hint, block.body, block.init, block.alloc_buffers, block.match_buffers)
    return tvm.s_tir.SBlock(block.iter_vars, reads, block.writes, *fields, block.annotations)


def _element(load: Any, kind: Any) -> Any:
    """The region of one element."""
    ranges = [tvm.ir.Range.from_min_extent(i, tirx.const(1, i.ty.dtype)) for i in load.indices]
    return tvm.ir.TensorRegion(load.source, ranges, kind)
