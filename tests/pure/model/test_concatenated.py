"""Norms and activations of a concatenation are computed on its parts, if layers make them."""

import numpy as np
import pytest
from helpers.graphs import assert_same, model, node, ops

from ansor_deploy.model.canonicalize import canonicalize

RNG = np.random.default_rng(0)
CONSTANTS = {
    "u": RNG.standard_normal((3, 4, 3, 3)),
    "v": RNG.standard_normal((2, 4, 1, 1)),
    "scale": RNG.standard_normal(5),
    "bias": RNG.standard_normal(5),
    "mean": RNG.standard_normal(5),
    "variance": RNG.uniform(0.5, 1.5, 5),
    "three": RNG.uniform(0.1, 0.5, (3, 1, 1)),
    "slope": RNG.uniform(0.1, 0.5, (5, 1, 1)),
    "column": RNG.standard_normal(6),
    "zero": np.array(0),
    "six": np.array(6),
}
PARTS = [
    node("Conv", "x u", "a", pads=[1, 1, 1, 1]),
    node("Conv", "x v", "b"),
    node("Concat", "a b", "c", axis=1),
]
NORM = node("BatchNormalization", "c scale bias mean variance", "n")
BEHIND = {
    "norm and swish": [NORM, node("Sigmoid", "n", "s"), node("Mul", "n s", "y")],
    "slopes of channels": [node("PRelu", "c slope", "y")],
    "a row of the image": [node("Add", "c column", "p"), node("Clip", "p zero six", "y")],
}
LEFT = {
    "another reader": [node("Relu", "c", "r"), node("Concat", "r c", "y", axis=1)],
    "no arithmetic": [node("Transpose", "c", "y", perm=[0, 2, 3, 1])],
}


def after(nodes, outputs=("y",)):
    constants = {name: value.astype(np.float32) for name, value in CONSTANTS.items()}
    constants["sizes"] = np.array([3, 4])
    proto = model(nodes, {"x": (1, 4, 6, 6)}, outputs, constants=constants)
    found = canonicalize(proto)
    assert_same(proto, found)
    return found


@pytest.mark.parametrize("nodes", BEHIND.values(), ids=BEHIND)
def test_parts_are_computed_first(nodes):
    found = after([*PARTS, *nodes])
    assert found.graph.node[-1].op_type == "Concat"
    assert "BatchNormalization" not in ops(found)


def test_parts_along_another_axis():
    taller = node("Conv", "x u", "b", pads=[1, 1, 2, 1])
    nodes = [PARTS[0], taller, node("Concat", "a b", "c", axis=2), node("PRelu", "c three", "y")]
    assert ops(after(nodes)) == ["Conv", "Conv", "PRelu", "PRelu", "Concat"]


def test_part_of_no_layer():
    pool = node("MaxPool", "x", "p", kernel_shape=[1, 1])
    nodes = [PARTS[0], pool, node("Concat", "a p", "c", axis=1), node("Relu", "c", "y")]
    assert ops(after(nodes))[-1] == "Concat"


@pytest.mark.parametrize("nodes", LEFT.values(), ids=LEFT)
def test_others_stay(nodes):
    assert ops(after([*PARTS, *nodes]))[2:] == ["Concat", *(one.op_type for one in nodes)]


def test_part_that_is_read_elsewhere():
    found = ops(after([*PARTS, node("Relu", "c", "y"), node("Abs", "a", "z")], ("y", "z")))
    assert found.count("Relu") == 1


def test_split_between_parts_gives_them():
    split = node("Split", "r", "p q", axis=1)
    split.input.append("sizes")
    third = node("Conv", "x v", "d")
    nodes = [*PARTS[:2], third, node("Concat", "a b d", "c", axis=1), node("Relu", "c", "r"), split]
    ends = [node("Abs", "p", "y"), node("Tanh", "q", "z")]
    found = ops(after([*nodes, *ends], ("y", "z")))
    assert "Split" not in found
    assert found.count("Concat") == 1
