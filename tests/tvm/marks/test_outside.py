"""Taps that meet nothing but padding are left out, and all others are there."""

import numpy as np
import pytest
from helpers import built, graphs
from helpers.graphs import model, node, randn
from helpers.ranges import opened

from ansor_deploy.codegen.model import compile_model
from ansor_deploy.model.batches import Span
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.model.relax.importer import import_model

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


@pytest.mark.parametrize("most", [10, 64])
def test_a_short_signal_meets_few_taps_of_a_long_window(most):
    """In a library for any length, also where the longest signal is longer than its padding."""
    import tvm

    weight = randn(0, 40, 24, 17)
    weight[0, :, [*range(4), *range(13, 17)]] = np.inf  # one element meets none of these
    nodes = [node("Conv", "x w", "c", pads=[8, 8]), node("Relu", "c", "y")]
    proto = model(nodes, {"x": (1, 24, "n")}, constants={"w": weight})
    made = import_model(opened(proto, {"x": (1, 24, Span(1, most))}), built.HOST)
    function = built.main_of(compile_model(made, extract(made.mod, built.HOST), {}, built.HOST))
    for length in (most, 9, 5, 2, 1):
        room = np.full((1, 24, most), np.nan, np.float32)
        room[..., :length] = x = randn(length, 1, 24, length)
        found = function(tvm.runtime.tensor(room), tvm.runtime.tensor(np.array(length, np.int64)))
        (want,), have = graphs.run(proto, {"x": x}), found[0].numpy()[..., :length]
        np.testing.assert_allclose(have[:, 1:], want[:, 1:], rtol=1e-4, atol=1e-4)
    assert np.isfinite(have).all()
