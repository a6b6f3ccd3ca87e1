"""Tensors without elements are constants, whatever makes them and wherever they go."""

import numpy as np
from helpers.graphs import assert_same, model, node, ops

from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.onnx.bind import bind_shapes


def test_a_reduction_of_nothing_is_a_constant():
    nodes = [node("Slice", "a n n one", "e"), node("Exp", "e", "x"),
             node("ReduceProd", "x", "p", axes=[1]), node("Add", "a p", "y")]  # fmt: skip
    constants = {"n": np.array([9]), "one": np.array([1])}
    proto = model(nodes, {"a": (2, 1, 4)}, constants=constants)
    after = canonicalize(proto)
    assert ops(after) == ["Add"]
    assert_same(proto, after)


def test_an_empty_output_is_made_by_a_node():
    nodes = [node("Slice", "x n n", "y"), node("Relu", "x", "z")]
    proto = model(nodes, {"x": (2, 3)}, ("y", "z"), {"n": np.array([9])})
    after = canonicalize(proto)
    assert sorted(ops(after)) == ["Identity", "Relu"]
    assert_same(proto, after)


def test_what_is_empty_joins_what_is_not():
    nodes = [node("Exp", "x", "e"), node("Concat", "e a", "y", axis=0)]
    after = canonicalize(bind_shapes(model(nodes, {"x": (0, 3), "a": (2, 3)}), {}))
    assert ops(after) == ["Concat"]
    assert [value.name for value in after.graph.input] == ["x", "a"]
