"""Inputs that are constants, and the branches that they choose."""

import sys

import numpy as np
import onnxruntime
import pytest
from helpers.graphs import either, model, node, typed
from onnx import TensorProto

from ansor_deploy.errors import ModelError, UsageError
from ansor_deploy.model.batches import Value
from ansor_deploy.model.fixed_inputs import proposing_values, with_values

X = np.float32([[1, -2, 3]])
KINDS = {"k": TensorProto.INT64, "on": TensorProto.BOOL, "f": TensorProto.FLOAT}


def choosing():
    """y is x, times two or, if `on`, plus p, or else minus p; p is of the last two alone."""
    inner = either("on", "m", [node("Add", "x p", "a")], [node("Sub", "x p", "s")])
    nodes = [
        node("Equal", "k two", "c"),
        either("c", "y", [node("Mul", "x f", "d")], [inner]),
    ]
    inputs = {
        "x": X,
        "p": X,
        "k": (KINDS["k"], ()),
        "on": (KINDS["on"], (1,)),
        "f": (KINDS["f"], ()),
    }
    return typed(nodes, inputs, {"y": X}, {"two": np.array(2)})


@pytest.mark.parametrize(
    ("values", "inputs", "operators", "factor"),
    [
        ({"k": "2", "f": "2"}, ["x"], ["Mul", "Identity"], 2),
        ({"k": "1", "on": "true"}, ["x", "p"], ["Add", "Identity", "Identity"], 2),
        ({"k": "-1", "on": "0"}, ["x", "p"], ["Sub", "Identity", "Identity"], 0),
        ({"f": "2.5", "on": "False"}, ["x", "p", "k"], ["Equal", "If"], None),
    ],
)
def test_the_branches_that_they_choose_are_left(values, inputs, operators, factor):
    made = with_values(choosing(), {name: (Value(text),) for name, text in values.items()})
    assert [one.name for one in made.graph.input] == inputs
    assert [one.op_type for one in made.graph.node] == operators
    if factor is not None:
        session = onnxruntime.InferenceSession(made.SerializeToString())
        (y,) = session.run(None, dict.fromkeys(inputs, X))
        assert np.array_equal(y, factor * X)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("q", "1", "no input 'q'"),
        ("k", "1.5", "1.5 is no int64"),
        ("k", str(1 << 64), "is no int64"),
        ("on", "2", "2 is no bool"),
        ("f", "true", "true is no float32"),
    ],
)
def test_what_an_input_cannot_be(name, text, says):
    with pytest.raises(UsageError, match=says):
        with_values(choosing(), {name: (Value(text),)})


def test_an_input_of_open_size_is_no_constant():
    proto = model([node("Relu", "x", "y")], {"x": ("n", 3)})
    with pytest.raises(UsageError, match="the size of input 'x' is open"):
        with_values(proto, {"x": (Value("1"),)})


def test_a_model_can_be_dropped_while_its_refusal_is_awaited():
    proto = choosing()
    before = sys.getrefcount(proto)
    with proposing_values(proto):
        assert sys.getrefcount(proto) == before


def test_a_refusal_proposes_them_for_what_chooses_branches():
    with pytest.raises(ModelError) as caught, proposing_values(choosing()):
        raise ModelError("no", "mend it.")
    assert caught.value.hint == "mend it; or build one branch alone: --input-shape k==VALUE"
