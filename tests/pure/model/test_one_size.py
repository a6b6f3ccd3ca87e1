"""Where one size is assumed for images or a length, the build says which node takes no other."""

import numpy as np
import pytest
from helpers.graphs import contrib, model, node, randn
from helpers.tried import assumed

from ansor_deploy.model.assumed import one_size
from ansor_deploy.model.misfit import Trials


def patches(side, places):
    """Images in patches of 16, each with a bias of its own."""
    nodes = [node("Conv", "x w", "c", strides=[16, 16]), node("Reshape", "c shape", "r")]
    constants = {"w": randn(0, 8, 3, 16, 16), "shape": np.array([1, 8, -1])}
    constants["table"] = randn(1, *places)
    proto = model([*nodes, node("Add", "r table", "y")], {"x": (1, 3, "h", "w")},
                  constants=constants)  # fmt: skip
    return proto, {"x": (1, 3, side, side)}


def test_a_table_of_places_says_why_images_have_one_size():
    proto, shapes = patches(224, (8, 196))
    assert assumed(proto, {}) == shapes
    assert one_size(Trials(proto), {}, shapes).startswith("node 'y' (Add)")


def test_a_graph_that_takes_other_images_has_no_reason():
    proto, _ = patches(224, (8, 1))
    assert not one_size(Trials(proto), {}, assumed(proto, {}))


@pytest.mark.parametrize(("held", "why"), [(10, "node 'r' (Reshape) makes 10x4x2 of"), (-1, "")])
def test_a_length_that_a_reshape_holds_says_so(held, why):
    constants = {"sizes": np.array([held, 4, 2])}
    nodes = [node("Reshape", "x sizes", "r"), node("Relu", "r", "y")]
    proto = model(nodes, {"x": ("batch", "seq", 8)}, constants=constants)
    assert one_size(Trials(proto), {}, assumed(proto, {})).startswith(why)
    assert bool(one_size(Trials(proto), {}, assumed(proto, {}))) == bool(why)


def test_a_length_shows_behind_fused_operators_that_onnx_does_not_know():
    read = contrib("SkipLayerNormalization", "x x g", "n - - s")
    nodes = [read, contrib("FastGelu", "n", "a"), node("Concat", "a s p", "y", axis=2)]
    constants = {"g": randn(0, 8), "p": randn(1, 1, 12, 8)}
    proto = model(nodes, {"x": ("batch", "seq", 8)}, constants=constants)
    assert assumed(proto, {}) == {"x": (1, 12, 8)}
