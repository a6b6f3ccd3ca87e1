"""What comes after the trees of an ensemble is what ONNX Runtime makes of their sums."""

import numpy as np
import pytest
from helpers.forests import forest, leaf_weights
from helpers.graphs import node, randn
from helpers.learned import assert_alike, classifier, learned
from onnx import TensorProto, numpy_helper
from onnx.helper import make_tensor_value_info

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize

X = randn(0, 9, 4)
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


def ensemble(classes, weighed, base=(), every=True, least=-1.0, x=X, **words):
    nodes = forest(6, 3, 4)
    words |= leaf_weights(nodes, "class", weighed, every, least)
    words |= {"base_values": list(base), "classlabels_int64s": list(range(7, 7 + classes))}
    return classifier("TreeEnsembleClassifier", x, **nodes, **words)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("least", [-1.0, 0.01])
@pytest.mark.parametrize(
    ("weighed", "base"),
    [([0], []), ([0], [0.2]), ([0], [0.2, 0.4]), ([1], []), ([1], [0.2]), ([0, 1], []),
     ([0, 1], [0.2])],
)  # fmt: skip
def test_two_classes(weighed, base, least, transform):
    assert_alike(ensemble(2, weighed, base, least=least, post_transform=transform), {"x": X})


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    ("weighed", "every", "base"),
    [([0, 1, 2], True, [0.1, -0.2, 0.3]), ([0, 1, 2], True, []), ([0, 1, 2], False, []),
     ([0, 2], True, []), ([1, 2], False, [0.1, -0.2, 0.3])],
)  # fmt: skip
def test_three_classes(weighed, every, base, transform):
    assert_alike(ensemble(3, weighed, base, every, post_transform=transform), {"x": X})
    assert_alike(ensemble(3, weighed, base, every, least=-3.0), {"x": X})


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_in_a_model_of_an_old_opset(classes):
    words = {"opset": 9, "version": 1, "post_transform": "LOGISTIC"}
    assert_alike(ensemble(classes, range(classes - 1), **words), {"x": X})


def test_classes_of_other_numbers():
    for x in (X.astype(np.float64), np.round(X).astype(np.int64)):
        assert_alike(ensemble(3, [0, 1, 2], x=x), {"x": x})


@pytest.mark.parametrize("transform", [*TRANSFORMS, "PROBIT"])
@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("has_base", [False, True])
def test_regression(targets, how, transform, has_base):
    nodes = forest(6, 3, 4)
    words = leaf_weights(nodes, "target", range(targets), least=0.01)
    if transform == "PROBIT":
        words["target_weights"] = [one / 7 for one in words["target_weights"]]
    words |= {"base_values": [0.05 * (1 + at) for at in range(targets)]} if has_base else {}
    words |= {"aggregate_function": how, "post_transform": transform, "n_targets": targets}
    assert_alike(learned("TreeEnsembleRegressor", {"x": X}, **nodes, **words), {"x": X}, 1e-4)


def test_what_is_refused():
    with pytest.raises(ModelError, match="node of its own, Softmax or Sigmoid"):
        canonicalize(learned("TreeEnsemble", {"x": X}, version=5, post_transform=1))
    with pytest.raises(ModelError, match="supported in float32: cast its input"):
        canonicalize(learned("TreeEnsemble", {"x": X.astype(np.float64)}, version=5))
    with pytest.raises(ModelError, match="leaves that leave out a class"):
        canonicalize(ensemble(2, [0, 1], every=False))
    with pytest.raises(ModelError, match="base values of both classes"):
        canonicalize(ensemble(2, [0, 1], [0.1, 0.2]))
    with pytest.raises(ModelError, match="2 base values for 3 classes"):
        canonicalize(ensemble(3, [0, 1, 2], [0.1, 0.2]))


def test_what_reads_shapes_of_scores_waits_for_them():
    """AdaBoost's votes: ones in the shape of a tree's scores, which no inference knows."""
    proto = ensemble(3, [0, 1, 2], x=X[:1], version=1)
    proto.graph.initializer.append(
        numpy_helper.from_array(np.array([4, 5, 6], np.int32), "classes")
    )
    for name, value in (("places", np.arange(3, dtype=np.float32)), ("one", np.array([1]))):
        proto.graph.initializer.append(numpy_helper.from_array(value, name))
    picked = node("ArrayFeatureExtractor", "classes most", "y")
    picked.domain = "ai.onnx.ml"
    nodes = [node("Shape", "score", "s"), node("ConstantOfShape", "s", "none")]
    nodes += [node("ArgMax", "score", "best", axis=1), node("Less", "best one", "is")]
    nodes += [node("Where", "is none places", "votes"), node("ArgMax", "votes", "most", axis=1)]
    proto.graph.node.extend([*nodes, picked])
    proto.graph.output.append(make_tensor_value_info("y", TensorProto.INT32, [1, 1]))
    assert_alike(proto, {"x": X[:1]})


def test_an_encoder_of_what_inference_has_no_type_for_is_read():
    """ONNX's inference reads the type of a LabelEncoder's input where it has none."""
    nodes = forest(6, 3, 4)
    words = {**nodes, **leaf_weights(nodes, "target", [0]), "n_targets": 1}
    proto = learned("TreeEnsembleRegressor", {"x": X}, {"y": TensorProto.INT64}, 2, **words)
    proto.graph.node[0].output[0] = "sum"
    words = {"keys_floats": [0.5, 1.5], "values_int64s": [3, 1], "default_int64": 2}
    proto.graph.node.append(node("LabelEncoder", "sum", "y", domain="ai.onnx.ml", **words))
    assert_alike(proto, {"x": X})
