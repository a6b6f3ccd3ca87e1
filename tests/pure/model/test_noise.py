"""Which tensors of a model are made inexact: those that depend on the values of its inputs."""

from helpers.graphs import model, node
from onnx import helper

from ansor_deploy.model.graph.noise import varying_tensors


def test_what_depends_on_shapes_alone_is_exact():
    nodes = [node("Shape", "x", "s"), node("Abs", "s", "t"), node("Abs", "x", "y")]
    assert varying_tensors(model(nodes, {"x": (4,)}).graph) == {"x", "y"}


def test_a_branch_that_only_hands_on_what_varies_varies():
    made = helper.make_empty_tensor_value_info("a")
    branch = helper.make_graph([], "branch", [], [made])
    chosen = node("If", "c", "y", then_branch=branch, else_branch=branch)
    proto = model([node("Abs", "x", "a"), chosen], {"x": (4,)})
    assert varying_tensors(proto.graph) == {"x", "a", "y"}
