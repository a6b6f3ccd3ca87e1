"""Pools of large windows are right as one along each axis, and small ones stay as they are."""

import pytest
from helpers.built import assert_like_oracle, imported
from helpers.graphs import model, node

from ansor_deploy._tvm import tirx

SHAPE = (1, 3, 19, 23)
LARGE = {  # name: (operator, attributes)
    "strided": ("MaxPool", {"kernel_shape": [7, 5], "strides": [3, 2], "pads": [3, 2, 2, 1]}),
    "dilated": ("MaxPool", {"kernel_shape": [5, 4], "dilations": [2, 3]}),
    "ceil": ("MaxPool", {"kernel_shape": [6, 6], "strides": [3, 2], "ceil_mode": 1}),
    "mean": ("AveragePool", {"kernel_shape": [9, 5], "pads": [4, 2, 4, 2]}),
    "mean with what is outside": (
        "AveragePool",
        {"kernel_shape": [9, 9], "strides": [4, 4], "pads": [4] * 4, "count_include_pad": 1},
    ),
    "mean of ceil": ("AveragePool", {"kernel_shape": [8, 6], "strides": [4, 2], "ceil_mode": 1}),
}
SMALL = {
    "small": ("MaxPool", {"kernel_shape": [3, 3], "strides": [1, 1]}),
    "apart": ("MaxPool", {"kernel_shape": [5, 5], "strides": [5, 5]}),
    "row": ("AveragePool", {"kernel_shape": [1, 9]}),
}


def pools(entries):
    nodes = [node(op, "x", f"y{at}", **how) for at, (op, how) in enumerate(entries.values())]
    return model(nodes, {"x": SHAPE}, tuple(f"y{at}" for at in range(len(nodes))))


@pytest.mark.parametrize(("entries", "kernels"), [(LARGE, 2), (SMALL, 1)])
def test_kernels_of_pools(entries, kernels):
    for name, entry in entries.items():
        functions = imported(pools({name: entry})).mod.functions.values()
        assert sum(isinstance(one, tirx.PrimFunc) for one in functions) == kernels, name


def test_pools_of_large_windows_are_right():
    assert_like_oracle(pools(LARGE))
