"""Operators of ai.onnx.ml become ONNX's own, with which ONNX Runtime computes the same."""

import numpy as np
import pytest
from helpers.graphs import randn
from helpers.learned import FLOAT, INT64, assert_alike, classifier, learned, svm
from onnx import TensorProto, helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.operators.support import refuse_early

TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
X = randn(0, 9, 6)
WHOLE = np.random.default_rng(0).integers(-3, 4, (9, 6))


@pytest.mark.parametrize("x", [X, X.astype(np.float64), WHOLE, WHOLE.astype(np.int32), X[0]])
@pytest.mark.parametrize("count", [1, 6])
def test_scaler(x, count):
    words = {"offset": randn(1, count).tolist(), "scale": randn(2, count).tolist()}
    assert_alike(learned("Scaler", {"x": x}, **words), {"x": x})


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("x", [X, WHOLE, X[0], np.where(np.arange(9)[:, None] < 3, 0, X)])
def test_normalizer(norm, x):
    assert_alike(learned("Normalizer", {"x": x}, norm=norm), {"x": x})


def test_feature_vectorizer():
    feeds = {"a": X, "b": X + 1, "c": randn(1, 9, 2, 3), "d": randn(2, 9)[:, None]}
    proto = learned("FeatureVectorizer", feeds, inputdimensions=[4, 6, 6, 3])
    assert_alike(proto, feeds)


@pytest.mark.parametrize("replaced", [0.0, np.nan])
@pytest.mark.parametrize("count", [1, 6])
def test_imputer(replaced, count):
    x = np.where(WHOLE == 0, np.float32(replaced), X)
    words = {"imputed_value_floats": randn(1, count).tolist(), "replaced_value_float": replaced}
    assert_alike(learned("Imputer", {"x": x}, **words), {"x": x})


def test_imputer_of_whole_numbers():
    words = {"imputed_value_int64s": [7], "replaced_value_int64": 2}
    assert_alike(learned("Imputer", {"x": WHOLE}, {"y": INT64}, **words), {"x": WHOLE})


@pytest.mark.parametrize("x", [WHOLE, 3 * X, WHOLE[0]])
def test_one_hot_encoder(x):
    proto = learned("OneHotEncoder", {"x": x}, cats_int64s=[2, -1, 0, 9], zeros=1)
    assert_alike(proto, {"x": x})
    known = np.where((x == 2) | (x == -1), x, 0)
    proto = learned("OneHotEncoder", {"x": known}, cats_int64s=[2, -1, 0, 9], zeros=0)
    assert_alike(proto, {"x": known})


@pytest.mark.parametrize(
    ("x", "words", "kind", "version"),
    [
        (WHOLE, {"keys_int64s": [2, 0, 2], "values_floats": [0.5, 1.5, 9.0]}, FLOAT, 2),
        (WHOLE, {"keys_int64s": [2, 0], "values_int64s": [5, 7], "default_int64": 3}, INT64, 2),
        (X, {"keys_floats": [float(X[0, 0]), float("nan")], "values_int64s": [5, 7]}, INT64, 4),
        (X, {"keys_floats": [float(X[1, 1])], "values_floats": [5.0]}, FLOAT, 4),
    ],
)
def test_label_encoder(x, words, kind, version):
    x = x if x.dtype == np.int64 else np.where(WHOLE == 1, np.float32(np.nan), x)
    assert_alike(learned("LabelEncoder", {"x": x}, {"y": kind}, version, **words), {"x": x})


def test_label_encoder_by_tensors():
    def tensor(name, *values):
        return helper.make_tensor(name, TensorProto.DOUBLE, [len(values)], values)

    x = WHOLE.astype(np.float64)
    words = {"keys_tensor": tensor("k", 1.0, 2.0), "values_tensor": tensor("v", 0.1, 0.2),
             "default_tensor": tensor("d", 4.0)}  # fmt: skip
    proto = learned("LabelEncoder", {"x": x}, {"y": TensorProto.DOUBLE}, 4, **words)
    assert_alike(proto, {"x": x})


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(("scores", "names"), [(1, [4, 7]), (2, [4, 7]), (3, [5, 2, 8])])
def test_linear_classifier(transform, scores, names):
    if transform == "PROBIT" and (scores, len(names)) == (1, 2):
        with pytest.raises(ModelError, match="PROBIT of one score"):
            canonicalize(linear_classifier(X, transform, scores, names))
        return
    x = np.abs(X) / 9 if transform == "PROBIT" else X  # of probabilities
    assert_alike(linear_classifier(x, transform, scores, names), {"x": x})


def test_one_of_two_classes_in_a_file_of_an_opset_without_where():
    """As exporters write it that declare no more than what they need."""
    proto = linear_classifier(X, "LOGISTIC", 1, [4, 7])
    (declared,) = (one for one in proto.opset_import if one.domain == "")
    declared.version = 8
    assert_alike(proto, {"x": X})


def linear_classifier(x, transform, scores, names):
    weights = np.abs(randn(1, 6 * scores)) / 9 if transform == "PROBIT" else randn(1, 6 * scores)
    bias = [0.1] * scores if transform == "PROBIT" else randn(2, scores).tolist()
    words = {"coefficients": weights.tolist(), "intercepts": bias, "classlabels_ints": names}
    return classifier("LinearClassifier", x, 1, post_transform=transform, **words)


@pytest.mark.parametrize("x", [X[0], WHOLE, X.astype(np.float64)])
def test_linear_classifier_of_other_inputs(x):
    assert_alike(linear_classifier(x, "SOFTMAX", 3, [0, 1, 2]), {"x": x})


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("has_bias", [False, True])
def test_linear_regressor(transform, targets, has_bias):
    words = {"coefficients": randn(1, 6 * targets).tolist(), "targets": targets}
    words |= {"intercepts": randn(2, targets).tolist()} if has_bias else {}
    assert_alike(learned("LinearRegressor", {"x": X}, post_transform=transform, **words), {"x": X})


KERNELS = [("LINEAR", [0.0] * 3), ("RBF", [0.3, 0.0, 3.0]), ("POLY", [0.2, 0.5, 2.0]),
           ("POLY", [0.2, 0.5, 3.0]), ("SIGMOID", [0.1, 0.2, 3.0])]  # fmt: skip


@pytest.mark.parametrize(("kernel", "parameters"), KERNELS)
@pytest.mark.parametrize("supports", [0, 5])
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(kernel, parameters, supports, one_class):
    words = {"coefficients": randn(1, supports or 6).tolist(), "rho": [0.2], "n_supports": supports}
    words |= {"support_vectors": randn(2, supports, 6).ravel().tolist(), "one_class": one_class}
    words |= {"kernel_type": kernel, "kernel_params": parameters}
    assert_alike(learned("SVMRegressor", {"x": X}, **words), {"x": X})


@pytest.mark.parametrize(("kernel", "parameters"), KERNELS)
@pytest.mark.parametrize("counts", [[3, 2], [2, 3, 4]])
def test_svm_classifier(kernel, parameters, counts):
    assert_alike(svm(counts, kernel_type=kernel, kernel_params=parameters), {"x": X})


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("counts", [[3, 2], [2, 3, 4], 2, 3])
def test_svm_classifier_and_its_scores(transform, counts):
    words = {"post_transform": transform, "kernel_params": [0.3, 0.0, 3.0]}
    assert_alike(svm(counts, kernel_type="RBF", **words), {"x": X})


def test_labels_that_are_text_are_refused_unless_nobody_reads_them():
    words = {"coefficients": randn(1, 12).tolist(), "intercepts": [0.1, 0.2]}
    words |= {"classlabels_strings": ["cat", "dog"]}
    both = {"label": TensorProto.STRING, "score": FLOAT}
    proto = learned("LinearClassifier", {"x": X}, both, 1, **words)
    with pytest.raises(ModelError, match="labels are text: train on numbers"):
        canonicalize(proto)
    del proto.graph.output[0]
    refuse_early(proto)
    assert_alike(proto, {"x": X})


def test_other_forms_are_refused_in_words():
    words = {"keys_strings": ["a"], "values_int64s": [1]}
    proto = learned("LabelEncoder", {"x": WHOLE}, {"y": INT64}, 2, **words)
    with pytest.raises(ModelError, match="text is not supported: encode it"):
        canonicalize(proto)
