"""Pads are no elementwise operators, though TVM takes those at the end of an axis for such.

Its patterns compare indices alone, and a pad behind the last element reads at its own:

    y[j] = x[j] if j < 30 else 0

So it would become the epilogue of the product that makes x. A tile writes what its own sums become,
and no sum becomes y[30]: nothing would write it.
"""

from ..._tvm import collect, tirx, tvm

# TVM's patterns (`op_pattern`) of what may be an epilogue are those before it.
_INJECTIVE = 2


def with_pads(mod: tvm.IRModule) -> tvm.IRModule:
    """The legalised module, with the pattern of other pads for those at the end of an axis.

    mod: after TVM's `AnnotateTIROpPattern`.
    """
    for name, func in mod.functions_items():
        if isinstance(func, tirx.PrimFunc) and _is_epilogue(func) and _reads_beyond(func):
            mod[name] = func.with_attr("op_pattern", _INJECTIVE)
    return mod


def _is_epilogue(func: tirx.PrimFunc) -> bool:
    return int((func.attrs or {}).get("op_pattern", _INJECTIVE)) < _INJECTIVE


def _reads_beyond(func: tirx.PrimFunc) -> bool:
    """Whether an element of the result has an index that a tensor which is read ends before."""
    known = tvm.sym.Analyzer()
    for block in collect(func.body, tvm.s_tir.SBlock):
        for axis in block.iter_vars:
            known.bind(axis.var, axis.dom)
    return any(
        known.const_int_bound(index).max_value >= int(extent)
        for load in collect(func.body, tvm.ir.TensorLoad)
        for index, extent in zip(load.indices, load.source.shape, strict=True)
    )
