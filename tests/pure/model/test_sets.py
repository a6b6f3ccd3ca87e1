"""First axes of which no name says what they are: batches, or rows that are taken together."""

import numpy as np
import pytest
from helpers.graphs import node, randn, typed
from helpers.tried import assumed
from onnx import TensorProto

from ansor_deploy.model.batches import Span
from ansor_deploy.model.onnx.sets import name_sets

F, I64 = TensorProto.FLOAT, TensorProto.INT64
ANY = Span(1, 1024)


def picked():
    """Rows of an input are picked by places that another input has."""
    nodes = [node("Gather", "x places", "p", axis=0), node("ReduceSum", "p", "s", keepdims=1)]
    inputs = {"x": (F, ["s7", 4]), "places": (I64, ["edges"])}
    return typed([*nodes, node("Add", "x s", "y")], inputs, {"y": (F, ["s7", 4])})


def placed():
    """Rows are placed in an image, as pillars of a cloud of points are."""
    nodes = [node("MatMul", "x w", "e"), node("ScatterND", "image at e", "y")]
    constants = {"w": randn(0, 4, 3), "image": np.zeros((64, 3), np.float32)}
    inputs = {"x": (F, ["M", 4]), "at": (I64, ["M", 1])}
    return typed(nodes, inputs, {"y": (F, [64, 3])}, constants)


def each():
    """Each row is computed by itself, and picks elements of its own."""
    nodes = [node("MatMul", "x w", "e"), node("Gather", "e two", "y", axis=1)]
    constants = {"w": randn(0, 4, 3), "two": np.array([0, 2])}
    return typed(nodes, {"x": (F, ["M", 4])}, {"y": (F, ["M", 2])}, constants)


def named_anew():
    """The exporter has given the result's axis a name of its own."""
    made = each()
    made.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "Gathery_dim_0"
    return made


def last():
    """Each row picks its own last step, by its number."""
    nodes = [node("GatherND", "x at", "y")]
    inputs = {"x": (F, ["s7", 5, 4]), "at": (I64, ["s7", 2])}
    return typed(nodes, inputs, {"y": (F, ["s7", 4])})


CASES = {
    picked: {"x": (ANY, 4), "places": (ANY,)},
    placed: {"x": (ANY, 4), "at": (ANY, 1)},
    each: {"x": (1, 4)},
    named_anew: {"x": (1, 4)},
    last: {"x": (1, 5, 4), "at": (1, 2)},
}


@pytest.mark.parametrize("make", CASES)
def test_rows_that_are_taken_together_are_a_set(make):
    proto = make()
    name_sets(proto)
    assert assumed(proto, {}) == CASES[make]
