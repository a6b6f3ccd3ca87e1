"""Operators that become what ONNX defines them to be, alone and inside a model."""

import numpy as np
import pytest
from helpers.built import assert_like_oracle
from helpers.graphs import model, node, ops
from onnx import TensorProto

from ansor_deploy.model.canonicalize import canonicalize
from benchmarks.fuzz.conformance_cases import attempt


@pytest.mark.parametrize("alpha", [{}, {"alpha": 0.5}])
def test_celu_twice_in_a_model(alpha):
    nodes = [node("Celu", "x", "h", **alpha), node("Celu", "h", "y")]
    assert_like_oracle(model(nodes, {"x": (3, 5)}))


@pytest.mark.parametrize(
    ("aligned", "theta", "size"),
    [(1, (2, 2, 3), [2, 3, 4, 5]), (0, (1, 2, 3), [1, 3, 1, 5]), (1, (1, 3, 4), [1, 2, 3, 1, 4])],
)
def test_a_grid_of_a_constant_size(aligned, theta, size):
    grid = node("AffineGrid", "x n", "y", align_corners=aligned)
    assert_like_oracle(model([grid], {"x": theta}, constants={"n": np.array(size)}, opset=20))


def test_definitions_of_definitions_are_expanded():
    nodes = [node("Cast", "t", "labels", to=TensorProto.INT64), node("Abs", "labels", "n"),
             node("Clip", "n - c", "k"), node("SoftmaxCrossEntropyLoss", "x k", "y")]  # fmt: skip
    proto = model(nodes, {"x": (2, 3, 4), "t": (2, 4)}, constants={"c": np.array(2)}, opset=13)
    assert not {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"} & set(
        ops(canonicalize(proto))
    )
    assert_like_oracle(proto)


@pytest.mark.parametrize("op", ["Elu", "Selu"])
def test_half_precision(op):
    proto = model([node(op, "x", "y")], {"x": (4, 8)}, opset=22, dtype=TensorProto.FLOAT16)
    assert_like_oracle(proto)


def test_a_definition_that_cannot_be_had_is_refused():
    found = attempt({"case": "test_linear_attention_gated"})
    assert found["outcome"] in ("right", "refused"), found["detail"]


def test_a_model_of_other_domains_alone_gets_standard_operators():
    found = attempt({"case": "test_ai_onnx_ml_binarizer"})
    assert found["outcome"] == "right", found["detail"]
