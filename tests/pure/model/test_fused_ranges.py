"""Fused and quantised operators of ONNX Runtime's, where a run decides how long the inputs are."""

import numpy as np
import pytest
from helpers.graphs import node, randn
from helpers.ranges import LONG, check

HERE = {"x": (1, LONG, 8)}
FLOATS = {"b": randn(1, 8), "g": randn(2, 8), "w": randn(3, 8, 24), "v": randn(4, 24)}
BYTES = {"s": np.float32(0.05), "z": np.uint8(128), "t": np.float32(0.3), "o": np.uint8(3)}
BYTES |= {"q": np.random.default_rng(0).integers(0, 255, (8, 24)).astype(np.uint8)}
BYTES |= {"u": np.float32(1 / 256), "k": np.uint8(0)}
OF_SHARES = node("DequantizeLinear", "j u k", "y")
TO, BACK = node("QuantizeLinear", "x s z", "i"), node("DequantizeLinear", "j t z", "y")


def fused(op, inputs, outputs="y", **attributes):
    made = node(op, inputs, outputs, **attributes)
    made.domain = "com.microsoft"
    return made


@pytest.mark.parametrize(
    "nodes",
    [
        [fused("BiasGelu", "x b")],
        [fused("QuickGelu", "x")],
        [fused("FusedMatMul", "x x", transB=1, alpha=0.5)],
        [fused("FusedMatMul", "x x", transA=1)],
        [fused("SkipLayerNormalization", "x x g b b")],
        [node("SimplifiedLayerNormalization", "x g", "y")],
        [fused("DequantizeLinear", "q t o", "d"), node("MatMul", "x d", "y")],
        [fused("Attention", "x w v", num_heads=2, unidirectional=1)],
        [TO, fused("QLinearAdd", "i s z i s z t z", "j"), BACK],
        [TO, node("QLinearMatMul", "i s z q s o t z", "j"), BACK],
        [TO, fused("QLinearSoftmax", "i s z u k", "j", axis=1, opset=13), OF_SHARES],
    ],
    ids=lambda nodes: nodes[-1].op_type if len(nodes) == 1 else nodes[1].op_type,
)
def test_what_is_fused_takes_any_length(nodes):
    read = {name for one in nodes for name in one.input}
    check(nodes, HERE, constants={n: one for n, one in {**FLOATS, **BYTES}.items() if n in read})


def test_sizes_that_the_optimiser_splits_from_a_shape_are_known():
    parts = node("Split", "n", "b t w", num_outputs=3)
    nodes = [node("Shape", "x", "n"), parts, node("Concat", "b t four two", "to", axis=0)]
    nodes += [node("Reshape", "x to", "r"), node("Transpose", "r", "y", perm=[0, 2, 1, 3])]
    check(nodes, HERE, constants={"four": np.array([4]), "two": np.array([2])})
