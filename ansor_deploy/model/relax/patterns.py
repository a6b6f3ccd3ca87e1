"""Fusion patterns of functions for which TVM's are wrong.

A pad is not elementwise, though TVM takes one at the end of an axis for that. TVM compares only
indices, and a pad behind the last element reads at the same index:

    y[j] = x[j] if j < 30 else 0

So it would become the epilogue of the product that makes x. A tile writes the elements that its own
sums become, and y[30] comes from no sum: nothing would write it.

A look-up in a table is a function of one element, though TVM sees an index that it does not know.
It is marked as elementwise where it is made.
"""

from ..._tvm import collect, tirx, tvm

# The attribute of a function of each element by itself.
ELEMENTWISE = "ansor.elementwise"

# TVM's patterns (`op_pattern`, of its `OpPatternKind`): the higher one is, the less is fused.
# An elementwise function:
_ELEMENTWISE = 0
# The last that can be an epilogue: its operands may be broadcast.
BROADCAST = 1
# The last that is fused with its consumers: each result is a function of some elements.
INJECTIVE = 2
# A function that is fused with consumers as its epilogue, such as a contraction.
WITH_EPILOGUE = 4
# A function that is never fused.
OPAQUE = 8


def with_patterns(mod: tvm.IRModule) -> tvm.IRModule:
    """The legalised module, with corrected patterns for pads at the end of an axis and for tables.

    mod: after TVM's `AnnotateTIROpPattern`.
    """
    for name, func in mod.functions_items():
        if not isinstance(func, tirx.PrimFunc):
            continue
        if ELEMENTWISE in (func.attrs or {}):
            mod[name] = func.without_attr(ELEMENTWISE).with_attr("op_pattern", _ELEMENTWISE)
        elif _is_epilogue(func) and _reads_beyond(func):
            mod[name] = func.with_attr("op_pattern", INJECTIVE)
    return mod


def _is_epilogue(func: tirx.PrimFunc) -> bool:
    return int((func.attrs or {}).get("op_pattern", INJECTIVE)) < INJECTIVE


def _reads_beyond(func: tirx.PrimFunc) -> bool:
    """Whether an index of a load can go beyond the extent of the tensor that is read."""
    known = tvm.sym.Analyzer()
    for block in collect(func.body, tvm.s_tir.SBlock):
        for axis in block.iter_vars:
            known.bind(axis.var, axis.dom)
    return any(
        known.const_int_bound(index).max_value >= int(extent)
        for load in collect(func.body, tvm.ir.TensorLoad)
        for index, extent in zip(load.indices, load.source.shape, strict=True)
    )
