"""Cast, for which TVM's own converter makes nine operators where floats become integers."""

from typing import Any

from onnx import helper

from ..._lazy_tvm import relax
from .converting import Call
from .operator import Operator

_NARROW = ("int8", "int16", "uint8", "uint16")


def cast(call: Call) -> Any:
    """Cast between numbers, by one or two instructions each; ONNX does not define overflow.

    TVM tests each number for infinity and wraps it around by several operators. The layout
    conversion does not know these as elementwise, and in a long epilogue LLVM takes a minute for
    them.
    """
    kind = str(helper.tensor_dtype_to_np_dtype(call.attribute("to")))
    # A shape has no element type.
    source = str(getattr(getattr(call.inputs[0], "ty", None), "dtype", ""))
    if call.value(0) is not None or "float" not in source or "int" not in kind:
        return call.by_tvm()
    if kind in _NARROW:  # as in C, and in ONNX Runtime: the low bits of 32
        return relax.op.astype(relax.op.astype(call.inputs[0], "int32"), kind)
    if kind == "uint32":
        return relax.op.astype(relax.op.astype(call.inputs[0], "int64"), kind)
    return relax.op.astype(call.inputs[0], kind)


OPERATORS = (Operator("Cast", convert=cast),)
