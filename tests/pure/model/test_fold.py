"""Constants are folded in few rounds over the graph, and each in few steps."""

import numpy as np
import pytest
from helpers.graphs import model, node, randn, run

from ansor_deploy.model.graph import fold
from ansor_deploy.model.graph.fold import fold_constants
from ansor_deploy.model.graph.graph import Graph


def test_sizes_that_follow_from_sizes_take_no_inference_of_the_whole_graph_each(monkeypatch):
    nodes = [node("Relu", "x", "x0")]
    for at in range(8):  # what makes x1 is known once the sizes of x0 are
        nodes += [node("Shape", f"x{at}", f"n{at}"), node("Reshape", f"x{at} n{at}", f"x{at + 1}")]
    graph = Graph.of(model([*nodes, node("Relu", "x8", "y")], {"x": (2, 3)}))
    rounds = []
    infer = Graph.infer
    monkeypatch.setattr(Graph, "infer", lambda self, **how: (rounds.append(1), infer(self, **how)))
    fold_constants(graph)
    assert graph.shapes["y"] == (2, 3)
    assert len(rounds) <= 3


@pytest.mark.parametrize("places", [[[0, 4], [-1, 1]], [[2], [-3]], [[[1]], [[3]]]])
def test_rows_are_scattered_at_once(places, monkeypatch):
    """The reference takes seconds for the relative positions of an image's patches."""
    places, data = np.array(places), randn(0, 4, 5)
    rows = randn(1, *places.shape[:-1], *data.shape[places.shape[-1] :])
    nodes = [node("ScatterND", "data places rows", "s"), node("Add", "x s", "y")]
    constants = {"data": data, "places": places, "rows": rows}
    proto = model(nodes, {"x": (4, 5)}, constants=constants)
    graph = Graph.of(proto)
    monkeypatch.setattr(fold, "_reference", None)
    fold_constants(graph)
    (want,) = run(proto, {"x": np.zeros((4, 5), np.float32)})
    np.testing.assert_array_equal(graph.value("s"), want)
