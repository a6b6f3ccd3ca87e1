"""Constants are folded in few rounds over the graph."""

from helpers.graphs import model, node

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
