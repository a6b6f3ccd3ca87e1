"""Sums along an axis are those of ONNX Runtime, and added up by vectors beside the axis."""

import numpy as np
from helpers.built import assert_like_oracle, imported
from helpers.graphs import model, node

from ansor_deploy._tvm import collect, tirx

SHAPE = (2, 5, 37)
KINDS = {
    "plain": (1, {}),
    "last": (-1, {"exclusive": 1}),
    "first": (0, {"reverse": 1}),
    "both": (1, {"exclusive": 1, "reverse": 1}),
}


def sums():
    nodes = [node("CumSum", f"x axis_{name}", name, **words) for name, (_, words) in KINDS.items()]
    axes = {f"axis_{name}": np.array([axis]) for name, (axis, _) in KINDS.items()}
    return model(nodes, {"x": SHAPE}, tuple(KINDS), axes)


def test_sums_along_any_axis_are_right():
    """Of 37 columns, which leave a part of a vector."""
    assert_like_oracle(sums())


def test_columns_beside_the_axis_are_added_as_vectors():
    functions = imported(sums()).mod.functions.values()
    vectors = [
        {
            int(loop.extent)
            for loop in collect(function, tirx.For)
            if loop.kind == tirx.ForKind.VECTORIZED
        }
        for function in functions
        if isinstance(function, tirx.PrimFunc)
    ]
    assert {16, 5} in vectors
