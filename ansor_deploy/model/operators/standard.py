"""Operators that TVM's own converters import. The files beside this have ours for others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._lazy_tvm import relax
from ...errors import ModelError
from .converting import Call
from .operator import Limit, Operator, Use, choice


def _trains(use: Use) -> bool:
    """Whether a BatchNormalization without `training_mode` computes its statistics (old opsets)."""
    if use.graph.opset < 7:
        return not use.attribute("is_test", 0)
    return use.graph.opset < 14 and any(use.node.output[1:])


_INFERS = Limit("it has one output (before opset 14), and `is_test` is 1 (before 7)", _trains)

_PLAIN = {  # for each first opset, the operators
    1: (
        "Abs", "Add", "And", "AveragePool", "Ceil", "Concat", "Constant", "Conv", "DepthToSpace",
        "Exp", "Flatten", "Floor", "Gemm", "GlobalLpPool",
        "GlobalMaxPool", "Greater", "HardSigmoid", "Identity",
        "LeakyRelu", "Less", "Log", "LogSoftmax", "LpPool", "MatMul", "Mean", "Neg", "Not",
        "Or", "Reciprocal", "ReduceL1", "ReduceLogSum",
        "ReduceProd", "Relu", "Shape", "Sigmoid", "Size",
        "Softplus", "Softsign", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh",
        "Transpose", "Xor",
    ),
    7: ("Acos", "Asin", "Atan", "Cos", "Sin", "Tan"),
    9: (
        "Acosh", "Asinh", "Atanh", "Compress", "Cosh", "Erf", "EyeLike", "IsNaN", "Shrink", "Sinh",
        "Where",
    ),
    10: ("Round",),
    11: (
        "ConcatFromSequence", "If", "Range", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
        "SequenceInsert", "SequenceLength", "SplitToSequence", "Unique",
    ),  # TVM's front end itself imports If and Constant
    12: ("GreaterOrEqual", "LessOrEqual"),
    14: ("Trilu",),
    15: ("CastLike", "Optional", "OptionalGetElement", "OptionalHasElement"),
    18: ("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Mish"),
    20: ("Gelu",),
}  # fmt: skip


def _picked(call: Call) -> Any:
    """An element of a sequence as a variable, since TVM's converters inspect their inputs."""
    sequence, place = call.emit(call.inputs[0]), int(np.asarray(call.value(1)))
    count = len(sequence.ty.fields)
    if not -count <= place < count:
        raise ModelError(f"element {place} of a sequence of {count}", "Correct the index.")
    return call.emit(relax.TupleGetItem(sequence, place % count))


OPERATORS = (
    *(Operator(name, since=since) for since, names in _PLAIN.items() for name in names),
    Operator("BatchNormalization", limits=(choice("training_mode", 0, 0), _INFERS)),
    Operator("ConstantOfShape", since=9, constant=(0,)),
    Operator("Expand", since=8, constant=(1,)),
    Operator("Reshape", constant=(1,)),
    Operator("SequenceAt", since=11, constant=(1,), convert=_picked),
    Operator("Tile", constant=(1,)),
)
