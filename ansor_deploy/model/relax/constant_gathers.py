"""Elements gathered along an axis at constant places: like any injective function of elements.

    a = x[rows] ; b = x[more] ; y = a * v + b * w         rows, more: constants

TVM fuses nothing with a gather, so interpolating between the rows of an image took five kernels,
which write four images. Places that are known to be within the tensor need no clamping either.

Where 16 registers hold the sums of a tile, none is left at its end for a table of 256 bytes. There
a large tensor is looked up in a kernel of its own, which takes less than half of that time.
"""

import math
from typing import Any

from ..._tvm import elements, has_features, relax, shape_of, tvm
from ..operators.indexing import BYTES
from .patterns import ELEMENTWISE, INJECTIVE, OPAQUE

# Fewer bytes are looked up where they are made: a kernel takes as long to call.
_WORTH_A_KERNEL = 1 << 12
# Features of processors that have more registers for vectors.
_MORE_REGISTERS = ("avx512f", "neon")


def is_table(call: relax.Call) -> bool:
    """Whether it looks bytes up in a table of 256 entries: an elementwise function of a byte."""
    table, indices = call.args
    return str(indices.ty.dtype) == "uint8" and [int(n) for n in table.ty.shape] == [BYTES]


def legalized(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """A gather as a PrimFunc: ours for known places along one axis, TVM's for others."""
    indices, axis = call.args[1], call.attrs.axis
    if is_table(call):
        alone = math.prod(shape_of(indices.ty)) >= _WORTH_A_KERNEL and _has_few_registers()
        attrs = {"op_pattern": OPAQUE} if alone else {ELEMENTWISE: True}
        named = {"primfunc_name_hint": "table", "primfunc_attrs": attrs}
        return builder.call_te(_of_bytes, call.args[0], indices, **named)
    known = isinstance(indices, tvm.ir.GenericConst) and len(indices.ty.shape) == 1
    if not known or axis is None or not _within(call, int(axis)):
        return call.op.get_attr("FLegalize")(builder, call)
    named = {"primfunc_name_hint": "take", "primfunc_attrs": {"op_pattern": INJECTIVE}}
    return builder.call_te(_looked_up, call.args[0], indices, int(axis), **named)


def _has_few_registers() -> bool:
    """Whether TVM's current target is a processor with 16 registers for vectors."""
    target = tvm.target.Target.current(allow_none=True)
    if target is None or target.kind.name != "llvm":
        return False
    return not any(has_features(str(target), (one,)) for one in _MORE_REGISTERS)


def _of_bytes(table: Any, places: Any) -> Any:
    return tvm.te.compute(places.shape, lambda *at: table[places(*at)], name="table")


def _within(call: relax.Call, axis: int) -> bool:
    """Whether every place is within the tensor."""
    places, extent = elements(call.args[1]), int(call.args[0].ty.shape[axis])
    return places.size > 0 and places.min() >= 0 and places.max() < extent


def _looked_up(x: Any, indices: Any, axis: int) -> Any:
    axis %= len(x.shape)
    shape = [*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :]]

    def element(*at: Any) -> Any:
        place = (*at[:axis], indices[at[axis]], *at[axis + 1 :])
        return x[place]

    return tvm.te.compute(shape, element, name="take")
