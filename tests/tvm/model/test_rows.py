"""Rows of a batch that are computed apart, as far as programs say, and those that are not."""

import numpy as np
import pytest
from helpers.built import imported
from helpers.forests import forest, leaf_weights
from helpers.graphs import model, node, randn
from helpers.learned import learned, svm
from onnx import helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.relax.rows import check_rows

ROWS = 4
X = {"x": (ROWS, 8, 6)}
IMAGE = {"x": (ROWS, 4, 8, 8)}
TURNED = {"perm": [1, 0, 2]}

APART = {
    "a product with weights, and a softmax": (
        [node("MatMul", "x w", "m"), node("Softmax", "m", "y", axis=-1)],
        X,
        {"w": randn(0, 6, 4)},
    ),
    "attention": (
        [
            node("Transpose", "x", "t", perm=[0, 2, 1]),
            node("MatMul", "x t", "s"),
            node("Softmax", "s", "p", axis=-1),
            node("MatMul", "p x", "y"),
        ],
        X,
        {},
    ),
    "rows merged with another axis, and parted again": (
        [
            node("Reshape", "x flat", "f"),
            node("MatMul", "f w", "m"),
            node("Reshape", "m back", "b"),
            node("Add", "b x", "y"),
        ],
        X,
        {"flat": [-1, 6], "w": randn(0, 6, 6), "back": [-1, 8, 6]},
    ),
    "rows behind the steps of a recurrence": (
        [
            node("Transpose", "x", "t", **TURNED),
            node("GRU", "t w r", "h l", hidden_size=4),
            node("Squeeze", "l one", "y"),
        ],
        X,
        {"w": randn(0, 1, 12, 6), "r": randn(1, 1, 12, 4), "one": [0]},
    ),
    "convolutions, side by side": (
        [
            node("Conv", "x v", "a", pads=[1] * 4),
            node("MaxPool", "x", "b", kernel_shape=[3, 3], pads=[1] * 4),
            node("Concat", "a b", "c", axis=1),
            node("Resize", "c - s", "y", mode="nearest"),
        ],
        IMAGE,
        {"v": randn(0, 4, 4, 3, 3), "s": np.array([1, 1, 2, 2], np.float32)},
    ),
    "a mask read at the numbers of its rows and columns": (
        [node("GatherND", "x places", "y")],
        {"x": (ROWS, 8)},
        {"places": np.stack(np.indices((ROWS, 8)), axis=-1)[:, None]},
    ),
    "a constant that is the same for each row": (
        [node("Concat", "x token", "y", axis=1)],
        X,
        {"token": np.repeat(randn(0, 1, 1, 6), ROWS, axis=0)},
    ),
}


@pytest.mark.parametrize("name", APART)
def test_rows_are_computed_apart(name):
    nodes, inputs, constants = APART[name]
    check_rows(imported(model(nodes, inputs, constants=constants)), ROWS, ["x"])


MIXED = {
    "a mean over the batch": (
        [node("ReduceMean", "x", "m", axes=[0]), node("Sub", "x m", "y")],
        {},
    ),
    "a softmax over the batch": ([node("Softmax", "x", "y", axis=0)], {}),
    "a sum up to each row": ([node("CumSum", "x a", "y")], {"a": 0}),
    "the first row": ([node("Gather", "x a", "f"), node("Add", "x f", "y")], {"a": 0}),
    "rows in another order": ([node("Gather", "x a", "y")], {"a": [3, 2, 1, 0]}),
    "a number for each row": ([node("Add", "x a", "y")], {"a": randn(0, ROWS, 1, 1)}),
    "all pairs of rows": (
        [node("Flatten", "x", "f"), node("Transpose", "f", "t"), node("MatMul", "f t", "y")],
        {},
    ),
    "a mask of all": ([node("ReduceMax", "x", "m", keepdims=0), node("Div", "x m", "y")], {}),
}


@pytest.mark.parametrize("name", MIXED)
def test_rows_that_are_mixed_are_found(name):
    nodes, constants = MIXED[name]
    built = imported(model(nodes, X, constants=constants))
    with pytest.raises(ModelError, match="reads several rows of the batch") as caught:
        check_rows(built, ROWS, ["x"])
    assert nodes[0].name in caught.value.text or nodes[-1].name in caught.value.text


def test_results_need_the_batch_in_front():
    for nodes in (
        [node("Transpose", "x", "y", **TURNED)],
        [node("Transpose", "x", "t", **TURNED), node("Reshape", "t s", "y")],
    ):
        built = imported(model(nodes, X, constants={"s": [ROWS, 8, 6]} if nodes[1:] else {}))
        with pytest.raises(ModelError, match="output 'y' has no row"):
            check_rows(built, ROWS, ["x"])


def test_what_all_rows_share_may_be_an_input():
    shapes = {**X, "w": (8, 6)}
    built = imported(model([node("Mul", "x w", "y")], shapes))
    check_rows(built, ROWS, ["x"])
    with pytest.raises(ModelError, match="reads several rows"):
        check_rows(built, ROWS, ["w"])


def trees():
    """As many samples as features."""
    nodes = forest(3, 2, 6)
    words = {**nodes, **leaf_weights(nodes, "target", [0, 1]), "n_targets": 2}
    return learned("TreeEnsembleRegressor", {"x": randn(0, 6, 6)}, **words)


def test_samples_are_apart_where_loops_end_as_they_say():
    check_rows(imported(trees()), 6, ["x"])
    check_rows(imported(trees()), 2, ["x"])
    words = {"prob_a": [-2.0] * 3, "prob_b": [0.1] * 3, "kernel_params": [0.3, 0.0, 3.0]}
    check_rows(imported(svm([2, 1, 2], kernel_type="RBF", **words)), 9, ["x"])


def test_samples_that_are_columns_of_a_batch_are_not():
    proto = trees()
    proto.graph.node[0].input[0] = "t"
    proto.graph.node.insert(0, helper.make_node("Transpose", ["x"], ["t"], "turned"))
    with pytest.raises(ModelError, match="reads several rows of the batch"):
        check_rows(imported(proto), 6, ["x"])
