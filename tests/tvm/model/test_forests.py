"""Trees and vector machines of a library say what ONNX Runtime's do."""

import numpy as np
import pytest
from helpers.built import imported, run
from helpers.forests import forest, leaf_weights
from helpers.graphs import randn
from helpers.graphs import run as by_onnx_runtime
from helpers.learned import classifier, learned, svm
from onnx import TensorProto, helper

from ansor_deploy.errors import ModelError

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
X = np.random.default_rng(0).integers(-3, 4, (40, 5)).astype(np.float32) / 2  # equal thresholds
X[3], X[5, 1] = np.nan, np.inf


def regressor(trees=5, depth=4, modes=MODES, targets=2, x=X, **words):
    nodes = forest(trees, depth, 5, modes, missing=True)
    nodes |= leaf_weights(nodes, "target", range(targets), every=False) | {"n_targets": targets}
    return learned("TreeEnsembleRegressor", {"x": x}, **nodes | words)


def assert_like_onnx_runtime(proto, x):
    for have, want in zip(run(proto, {"x": x}), by_onnx_runtime(proto, {"x": x}), strict=True):
        assert (have.shape, have.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_each_comparison(mode):
    assert_like_onnx_runtime(regressor(modes=(mode,)), X)


@pytest.mark.parametrize("how", ["SUM", "MIN", "MAX"])
def test_all_comparisons_and_what_is_made_of_leaves(how):
    assert_like_onnx_runtime(regressor(modes=MODES[:4], aggregate_function=how), X)


def test_the_first_of_several_weights_of_a_leaf_counts_if_there_is_one_target():
    """As skl2onnx writes the leaf that was reached, once for each class."""
    nodes = forest(3, 3, 5)
    weights = leaf_weights(nodes, "target", [0, 0, 0]) | {"n_targets": 1}
    proto = learned("TreeEnsembleRegressor", {"x": X}, **nodes, **weights)
    assert_like_onnx_runtime(proto, np.nan_to_num(X))


def test_many_samples_in_parallel_and_one_node():
    x = np.tile(X, (30, 1))[:1190]
    assert_like_onnx_runtime(regressor(trees=12, modes=("BRANCH_LEQ",), x=x), x)
    assert_like_onnx_runtime(regressor(depth=0), X)


def test_classes_of_double():
    nodes = forest(4, 3, 5)
    nodes |= leaf_weights(nodes, "class", [0, 1, 2], every=False)
    x = np.nan_to_num(X).astype(np.float64)
    proto = classifier("TreeEnsembleClassifier", x, classlabels_int64s=[1, 2, 3], **nodes)
    assert_like_onnx_runtime(proto, x)


def test_branches_and_leaves_in_lists_of_their_own():
    def tensor(name, kind, *values):
        return helper.make_tensor(name, kind, [len(values)], values)

    kind, weights = TensorProto.FLOAT, [1, 2, 3, 4, 5]
    proto = learned(
        "TreeEnsemble", {"x": X}, version=5, n_targets=2, tree_roots=[0, 3],
        nodes_modes=tensor("m", TensorProto.UINT8, 0, 6, 4, 6), nodes_featureids=[0, 1, 2, 3],
        nodes_splits=tensor("s", kind, 0.5, 0.0, 1.0, 0.0),
        nodes_truenodeids=[1, 0, 2, 4], nodes_trueleafs=[0, 1, 1, 1],
        nodes_falsenodeids=[2, 1, 3, 4], nodes_falseleafs=[0, 1, 1, 1],
        leaf_targetids=[0, 1, 0, 1, 1], leaf_weights=tensor("w", kind, *weights),
        membership_values=tensor("v", kind, 2, 1, -1, np.nan, 0, np.nan),
    )  # fmt: skip
    assert_like_onnx_runtime(proto, np.round(np.nan_to_num(X)))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"nodes_truenodeids": [9, 0, 0]}, "a node is named that there is not"),
        ({"nodes_truenodeids": [0, 0, 0]}, "below itself, or no way leads to it"),
        ({"nodes_nodeids": [0, 1, 1]}, "one number"),
        ({"nodes_featureids": [5, 0, 0]}, "beyond the 5"),
        ({"target_ids": [0, 7]}, "a target that there is not"),
        ({"nodes_modes": ["BRANCH_OF", "LEAF", "LEAF"]}, "of the mode BRANCH_OF"),
    ],
)
def test_what_is_no_forest(words, reason):
    with pytest.raises(ModelError, match=reason):
        imported(regressor(trees=1, depth=1, modes=("BRANCH_LEQ",), **words))


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX"])
@pytest.mark.parametrize("counts", [[3, 2], [2, 3, 4], [2, 1, 3, 2, 2]])
def test_probabilities_of_a_vector_machine(counts, transform):
    """Of some samples all are near at once, of others after rounds: slopes are small and large."""
    pairs = len(counts) * (len(counts) - 1) // 2
    words = {"prob_a": (-9 * randn(4, pairs)).tolist(), "prob_b": randn(5, pairs).tolist()}
    words |= {"post_transform": transform, "kernel_params": [0.3, 0.0, 3.0]}
    proto = svm(counts, kernel_type="RBF", **words)
    assert_like_onnx_runtime(proto, randn(0, 9, 6))
