"""Sums of thousands of products of two computed tensors are added up in parts."""

import pytest
from helpers.graphs import assert_same, model, node, randn

from ansor_deploy.model.canonicalize import canonical_graph


def steps(proto):
    """The steps of each product of matrices after all passes."""
    after = canonical_graph(proto)
    assert_same(proto, after.to_proto(), 1e-4)
    return [after.shapes[one.input[0]][-1] for one in after.nodes if one.op_type == "MatMul"]


def gram(shape, *first, right="t", **words):
    """The products of all rows of a tensor with each other, after some nodes."""
    last = len(shape) - 1
    order = [*range(last - 1), last, last - 1]
    nodes = [*first, node("Transpose", "r", "t", perm=order), node("MatMul", f"r {right}", "y")]
    return model(nodes, {"x": shape}, **words)


@pytest.mark.parametrize(
    ("shape", "part"),
    [((3, 4096), 512), ((1, 2, 3, 75 * 75), 375), ((1, 3, 4095), 4095), ((2, 4099), 4099)],
)
@pytest.mark.parametrize("opset", [11, 17])
def test_long_products_are_parted(shape, part, opset):
    assert steps(gram(shape, node("Tanh", "x", "r"), opset=opset)) == [part]


def test_products_with_weights_and_of_a_softmax_stay_whole():
    weights = gram((3, 4096), node("Tanh", "x", "r"), right="w", constants={"w": randn(0, 4096, 2)})
    assert steps(weights) == [4096]
    assert steps(gram((3, 4096), node("Softmax", "x", "r"))) == [4096]
