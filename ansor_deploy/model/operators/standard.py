"""Operators that TVM's own converters import. Ours for some others are in the files beside this."""

from .operator import Limit, Use, choice, importable


def _trains(use: Use) -> bool:
    """Whether a BatchNormalization of the time before `training_mode` computes its statistics."""
    if use.graph.opset < 7:
        return not use.attribute("is_test", 0)
    return use.graph.opset < 14 and any(use.node.output[1:])


_INFERS = Limit("it has one output (before opset 14), and `is_test` is 1 (before 7)", _trains)

# fmt: off
importable(
    1, "Abs", "Add", "And", "AveragePool", "Ceil",
    "Concat", "Constant", "Conv", "DepthToSpace", "Div", "Equal",
    "Exp", "Flatten", "Floor", "Gemm", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool",
    "Greater", "HardSigmoid", "Identity", "InstanceNormalization", "LRN", "LeakyRelu",
    "Less", "Log", "LogSoftmax", "LpPool", "MatMul", "Mean", "Mul", "Neg",
    "Not", "Or", "PRelu", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceMean", "ReduceProd", "ReduceSum",
    "ReduceSumSquare", "Relu", "Shape", "Sigmoid", "Size", "Slice", "Softmax", "Softplus",
    "Softsign", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh",
    "Transpose", "Xor",
)
importable(1, "BatchNormalization", limits=(choice("training_mode", 0, 0), _INFERS))
importable(1, "Reshape", "Tile", constant=(1,))
importable(7, "Acos", "Asin", "Atan", "Cos", "Sin", "Tan")
importable(8, "Expand", constant=(1,))
importable(9, "ConstantOfShape", constant=(0,))
importable(
    9, "Acosh", "Asinh", "Atanh", "Compress", "Cosh", "Erf", "EyeLike", "IsNaN",
    "NonZero", "Shrink", "Sinh", "Where",
)
importable(
    10, "Round",
)
importable(
    11, "ConcatFromSequence", "CumSum", "Range", "SequenceAt",
    "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
    "SplitToSequence", "Unique",
)
importable(11, "If")  # by TVM's front end itself, as Constant is
importable(12, "Einsum", "GreaterOrEqual", "LessOrEqual")
importable(14, "HardSwish", "Trilu")
importable(15, "CastLike", "Optional", "OptionalGetElement", "OptionalHasElement")
importable(16, "GridSample")
importable(18, "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "GroupNormalization", "Mish")
importable(20, "Gelu")
# fmt: on
