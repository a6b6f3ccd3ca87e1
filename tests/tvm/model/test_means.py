"""Means of windows of bytes are summed in integers: the bytes of ONNX Runtime, but for ties."""

from itertools import product

import numpy as np
import pytest
from helpers.graphs import node, typed
from helpers.together import Together

from ansor_deploy.model.canonicalize import canonicalize

RNG = np.random.default_rng(0)
POOLS = {
    "rest at the end": ((1, 16, 8, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "no window of padding alone": (
        (1, 16, 8, 8),
        {"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1, "pads": [1] * 4},
    ),
    "more padding at the end": (
        (1, 3, 7, 6), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ),
    "more padding at the beginning": (
        (1, 3, 7, 6), {"kernel_shape": [3, 2], "strides": [2, 1], "auto_pad": "SAME_LOWER"},
    ),
    "padding that counts": (
        (2, 8, 9, 9), {"kernel_shape": [3, 3], "pads": [1, 1, 0, 0], "count_include_pad": 1},
    ),
    "one axis": ((2, 8, 9), {"kernel_shape": [3]}),
    "three axes": ((1, 8, 5, 6, 7), {"kernel_shape": [3, 2, 3], "pads": [1] * 6}),
    "one window": ((2, 8, 5, 6), {"kernel_shape": [5, 6]}),
}  # fmt: skip


def model(nodes, shape, kind, to=0.0437):
    """Nodes from "x" to "o", bytes of the scales xs and ys."""
    known = {"xs": np.float32(0.02), "ys": np.float32(to), "xz": kind(100), "yz": kind(7)}
    return typed(nodes, {"x": (kind, shape)}, {"o": kind}, known, 19)


def between_conversions(how):
    return [
        node("DequantizeLinear", "x xs xz", "a"), node("AveragePool", "a", "b", **how),
        node("QuantizeLinear", "b ys yz", "o"),
    ]  # fmt: skip


def on_bytes(how):
    made = node("QLinearAveragePool", "x xs xz ys yz", "o", **how)
    made.domain = "com.microsoft"
    return [made]


def drawn(shape, kind):
    ends = np.iinfo(kind)
    return RNG.integers(ends.min, ends.max + 1, shape).astype(kind)


def of_operators():
    """The operator on bytes: types, layouts, and whether padding counts."""
    how = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "ceil_mode": 1}
    for kind, last, padded in product((np.uint8, np.int8), (0, 1), (0, 1)):
        nodes = on_bytes({**how, "channels_last": last, "count_include_pad": padded})
        shape = (1, 8, 7, 6) if last else (1, 6, 8, 7)
        yield f"{kind.__name__}, {last}, {padded}", (nodes, shape, kind)


MEANS = {
    **{name: (between_conversions(how), one, np.uint8) for name, (one, how) in POOLS.items()},
    **dict(of_operators()),
}
TIES = list(product((0.01, 0.02, 0.04), (between_conversions, on_bytes)))


@pytest.fixture(scope="module")
def models():
    square, two = (1, 8, 12, 12), {"kernel_shape": [2, 2]}
    made = {name: model(*one) for name, one in MEANS.items()}
    made |= {(to, nodes): model(nodes(two), square, np.uint8, to) for to, nodes in TIES}
    drawings = {name: drawn(shape, kind) for name, (_, shape, kind) in MEANS.items()}
    drawings |= {tie: drawn(square, np.uint8) for tie in TIES}
    return made, Together(made, {name: {"x": x} for name, x in drawings.items()})


@pytest.mark.parametrize("name", MEANS)
def test_means_are_integers_of_the_oracle(name, models):
    made, together = models
    assert not {one.op_type for one in canonicalize(made[name]).graph.node} & {"AveragePool"}
    np.testing.assert_array_equal(together.outputs(name)[0], together.expected(name)[0])


@pytest.mark.parametrize(("to", "nodes"), TIES)
def test_a_tie_is_the_even_byte(to, nodes, models):
    """Whatever the sums of floats round to: half of what is here is as near to two bytes."""
    x = models[1].feeds[to, nodes]["x"]
    (found,) = models[1].outputs((to, nodes))
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(int) - 100, (2, 2), axis=(2, 3))
    wanted = windows.sum((-1, -2)) * (0.02 / to / 4) + 7
    np.testing.assert_array_equal(found, np.rint(wanted).clip(0, 255))


def test_padding_that_counts_only_in_part_is_as_onnx_has_it():
    how = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1}
    shape = (1, 3, 8, 8)
    found = canonicalize(model(between_conversions(how), shape, np.uint8))
    assert "AveragePool" in {one.op_type for one in found.graph.node}
