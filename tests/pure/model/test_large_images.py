"""Images are smaller than usual where attention between their pixels would need gigabytes."""

import numpy as np
from helpers.graphs import model, node, randn
from helpers.tried import assumed

from ansor_deploy.model.assumed import too_large
from ansor_deploy.model.batches import Span
from ansor_deploy.model.misfit import Trials

SIDE = Span(32, 64, 32)


def attended(heads):
    """Attention between all pixels, as in diffusers' U-Nets of small images."""
    nodes = [
        node("Conv", "x w", "c"),
        node("Shape", "c", "n", end=1),
        node("Concat", "n shape", "rows", axis=0),
        node("Reshape", "c rows", "k"),
        node("Transpose", "k", "q", perm=[0, 1, 3, 2]),
        node("MatMul", "q k", "y"),
        node("Resize", "c - twice", "z"),
    ]
    constants = {
        "twice": np.float32([1, 1, 2, 2]),
        "w": randn(0, heads, 3, 1, 1),
        "shape": np.array([heads, 1, -1]),
    }
    return model(nodes, {"x": ("batch", 3, "height", "width")}, constants=constants)


def test_sides_are_the_next_power_of_two_with_which_no_tensor_is_huge():
    proto = attended(4)
    assert assumed(proto, {}) == {"x": (1, 3, SIDE, SIDE)}
    assert too_large(Trials(proto), {}) == "with x=1,3,224,224 one tensor would have 40.3 GB"
