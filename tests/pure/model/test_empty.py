"""Tensors without elements are constants, whatever makes them and wherever they go."""

import numpy as np
from helpers.graphs import assert_same, model, node, ops

from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.graph.empty import fold_empty
from ansor_deploy.model.graph.graph import Graph
from ansor_deploy.model.onnx.bind import bind_shapes


def test_a_reduction_of_nothing_is_a_constant():
    nodes = [node("Slice", "a n n one", "e"), node("Exp", "e", "x"),
             node("ReduceProd", "x", "p", axes=[1]), node("Add", "a p", "y")]  # fmt: skip
    constants = {"n": np.array([9]), "one": np.array([1])}
    proto = model(nodes, {"a": (2, 1, 4)}, constants=constants)
    after = canonicalize(proto)
    assert ops(after) == ["Add"]
    assert_same(proto, after)


def test_a_norm_of_nothing_has_more_results_than_the_node_names():
    nodes = [node("NonZero", "c", "n"), node("Transpose", "n", "t"),  # no size known before
             node("Cast", "t", "e", to=1), node("LayerNormalization", "e s", "l"),
             node("Concat", "l a", "y", axis=0)]  # fmt: skip
    constants = {"c": np.zeros(4, np.float32), "s": np.ones(1, np.float32)}
    proto = model(nodes, {"a": (2, 1)}, constants=constants)
    assert_same(proto, canonicalize(proto))


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


def test_the_nodes_are_gone_through_once_for_all_empty_tensors(monkeypatch):
    renamed, rename = [], Graph.rename_uses
    monkeypatch.setattr(
        Graph, "rename_uses", lambda graph, new: renamed.append(len(new)) or rename(graph, new)
    )
    cut = [node("Slice", "x n n", f"e{at}") for at in range(5)]
    joined = node("Concat", "x e0 e1 e2 e3 e4", "y", axis=0)
    graph = Graph.of(model([*cut, joined], {"x": (2, 3)}, constants={"n": np.array([9])}))
    graph.infer()
    assert fold_empty(graph)
    assert renamed == [5]
