"""Taps that meet nothing but padding are left out, and all others are there."""

import numpy as np
import pytest
from helpers import built
from helpers.graphs import model, node, randn

# Of convolutions of one image: sizes of windows, and what they are like.
FAR = {
    "far": ((3, 3), {"dilations": [6, 5], "pads": [6, 5, 6, 5]}),
    "beyond": ((3, 3), {"dilations": [9, 9], "pads": [9, 9, 9, 9]}),
    "on one side": ((3, 2), {"dilations": [5, 3], "pads": [10, 3, 0, 0]}),
    "strided": ((3, 3), {"dilations": [4, 6], "pads": [4, 6, 4, 6], "strides": [2, 2]}),
    "wide": ((5, 5), {"pads": [2, 2, 2, 2]}),
}


def convolution(name, weight=None):
    size, how = FAR[name]
    weight = randn(0, 40, 24, *size) if weight is None else weight
    nodes = [node("Conv", "x w", "c", **how), node("Relu", "c", "y")]
    return model(nodes, {"x": (2, 24, 7, 9)}, constants={"w": weight})


@pytest.mark.parametrize("name", FAR)
def test_windows_of_any_kind(name):
    built.assert_like_oracle(convolution(name))


def test_a_tap_that_no_result_needs_is_not_multiplied():
    weight = randn(0, 40, 24, 3, 3)
    weight[:, :, 0] = np.inf
    (found,) = built.run(convolution("beyond", weight), {"x": randn(1, 2, 24, 7, 9)})
    assert np.isfinite(found).all()
