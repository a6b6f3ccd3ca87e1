"""Zeros around an image are the padding of the convolution that reads it, in numbers."""

import numpy as np
import pytest
from helpers.graphs import assert_same, model, node, ops, randn

from ansor_deploy.model.canonicalize import canonicalize

CONSTANTS = {
    "w": randn(0, 5, 3, 3, 3),
    "around": np.array([0, 0, 1, 2, 0, 0, 3, 0]),
    "spatial": np.array([1, 2, 3, 0]),
    "last": np.array([-1, 2]),
    "channels": np.array([0, 1, 0, 0, 0, 1, 0, 0]),
    "cut": np.array([0, 0, -1, 0, 0, 0, 0, 0]),
    "zero": np.float32(0),
    "one": np.float32(1),
    "v": randn(1, 5, 5, 3, 3),
}
FOLDED = {
    "all axes": (node("Pad", "x around", "p"), {}),
    "with a value": (node("Pad", "x around zero", "p"), {"pads": [1, 0, 0, 2]}),
    "some axes": (node("Pad", "x spatial - last", "p"), {"auto_pad": "VALID"}),
    "more": (node("Pad", "x around", "p"), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
}
LEFT = {
    "ones": (node("Pad", "x around one", "p"), {}),
    "mirrored": (node("Pad", "x around", "p", mode="reflect"), {}),
    "cut": (node("Pad", "x cut", "p"), {}),
}


def after(*nodes, opset=18, outputs=("y",)):
    proto = model(nodes, {"x": (1, 3, 7, 8)}, outputs, CONSTANTS, opset)
    found = canonicalize(proto)
    assert_same(proto, found)
    return ops(found)


@pytest.mark.parametrize(("pad", "of_conv"), FOLDED.values(), ids=FOLDED)
def test_zeros_are_padding(pad, of_conv):
    assert after(pad, node("Conv", "p w", "y", **of_conv)) == ["Conv"]


@pytest.mark.parametrize(("pad", "of_conv"), LEFT.values(), ids=LEFT)
def test_others_stay(pad, of_conv):
    assert "Pad" in after(pad, node("Conv", "p w", "y", **of_conv))


@pytest.mark.parametrize("how", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("steps", [[1, 1], [2, 3]])
def test_padding_by_name_is_in_numbers(how, steps):
    conv = node("Conv", "x w", "y", auto_pad=how, strides=steps)
    proto = model([conv], {"x": (1, 3, 7, 8)}, constants={"w": CONSTANTS["w"]})
    found = canonicalize(proto)
    assert_same(proto, found)
    assert "auto_pad" not in {entry.name for entry in found.graph.node[0].attribute}


@pytest.mark.parametrize("ceil", [0, 1])
def test_maxima_are_padded_in_numbers(ceil):
    same = {"auto_pad": "SAME_UPPER", "kernel_shape": [3, 2], "strides": [2, 3]}
    proto = model([node("MaxPool", "x", "y", ceil_mode=ceil, **same)], {"x": (1, 3, 7, 8)})
    found = canonicalize(proto)
    assert_same(proto, found)
    assert {"auto_pad", "ceil_mode"}.isdisjoint(one.name for one in found.graph.node[0].attribute)


def test_channels_stay():
    assert "Pad" in after(node("Pad", "x channels", "p"), node("Conv", "p v", "y"))


def test_old_files_have_attributes():
    pad = node("Pad", "x", "p", pads=[0, 0, 1, 1, 0, 0, 1, 1], value=0.0)
    assert after(pad, node("Conv", "p w", "y"), opset=9) == ["Conv"]


def test_what_else_reads_the_zeros_still_does():
    found = after(
        FOLDED["all axes"][0], node("Conv", "p w", "y"), node("Abs", "p", "z"), outputs="yz"
    )
    assert sorted(found) == ["Abs", "Conv", "Pad"]
