"""Values multiplied by transposed weights of a softmax are multiplied row by row instead."""

import pytest
from helpers.graphs import assert_same, model, node, ops

from ansor_deploy.model.canonicalize import canonicalize

SHAPES = {"v": (2, 3, 5, 7), "s": (2, 3, 6, 7)}
SOFTMAX = node("Softmax", "s", "p", axis=-1)
TURNED = node("Transpose", "p", "t", perm=[0, 1, 3, 2])
PRODUCT = node("MatMul", "v t", "y")


def after(*nodes, outputs=("y",)):
    proto = model(nodes, SHAPES, outputs=list(outputs))
    found = canonicalize(proto)
    assert_same(proto, found)
    return ops(found)


def test_the_result_is_transposed_instead_of_the_weights():
    assert after(SOFTMAX, TURNED, PRODUCT) == ["Softmax", "Transpose", "MatMul", "Transpose"]


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        ([node("Softmax", "s", "p", axis=2), TURNED, PRODUCT], ["y"]),
        ([SOFTMAX, TURNED, PRODUCT], ["y", "p"]),
        ([SOFTMAX, TURNED, PRODUCT, node("Neg", "t", "z")], ["y", "z"]),
        ([node("Sigmoid", "s", "p"), TURNED, PRODUCT], ["y"]),
    ],
)
def test_other_products_keep_their_order(nodes, outputs):
    made = after(*nodes, outputs=outputs)
    assert made.count("Transpose") == 1
