"""Quantised networks on a board: the bytes that they have on this machine, extreme ones too."""

import numpy as np
import pytest
from helpers import built, graphs
from helpers.graphs import node
from helpers.quantised_nets import NAMES, network

from ansor_deploy.codegen.model import compile_model
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from benchmarks.networks.quantised import quantised

BOARD = load_target("rpi3", [shipped("targets")])


def on_board(proto, feed, emulated, path):
    """The outputs of the model under default schedules, in the board's code."""
    model = built.imported(proto, BOARD)
    compile_model(model, extract(model.mod, BOARD), {}, BOARD).export(path, BOARD)
    (interface,) = model.interfaces
    library = emulated.load(path, {**interface.to_json(), "target": BOARD.to_json()})
    return [library(**feed)[info.name] for info in interface.outputs]


@pytest.mark.parametrize("name", NAMES)
def test_a_board_makes_the_same_bytes(name, emulated, tmp_path):
    proto = network(name)
    feed = graphs.random_feeds(proto)
    made = on_board(proto, feed, emulated, tmp_path / "net.so")
    for have, want in zip(made, built.run(proto, feed), strict=True):
        np.testing.assert_array_equal(have.view(np.uint8), want.view(np.uint8))


@pytest.mark.parametrize("channels", [64, 3])
def test_so_it_does_where_convolutions_are_by_tiles_or_runs(channels, emulated, tmp_path):
    nodes = [node("Conv", "x w", "y", pads=[1, 1, 1, 1])]
    weight = graphs.randn(0, 64, channels, 3, 3) / np.float32(17)
    shape = (1, channels, 14, 14)
    proto = quantised(graphs.model(nodes, {"x": shape}, constants={"w": weight}), "qdq")
    feed = graphs.random_feeds(proto)
    (made,) = on_board(proto, feed, emulated, tmp_path / "net.so")
    (want,) = built.run(proto, feed)
    np.testing.assert_array_equal(made, want)


RNG = np.random.default_rng(0)
# Rows all of whose sums are as far from 0 as they can be, beside others.
BYTES = {"uint8": (0, 255), "int8": (-128, 127)}
SHAPES = [(7, 64, 48), (5, 12, 24), (13, 20, 72), (1, 128, 64)]


def product(kind, rows, depth, columns):
    """A product of bytes around 128 or 0, by weights with -128 among them, or none."""
    weight = np.where(RNG.random((depth, columns)) < 0.5, 127, -127).astype(np.int8)
    weight[:, 0], weight[:, 1] = -128, -127
    zero = np.array(128 if kind == "uint8" else 0, kind)
    made = node("MatMulInteger", "x w z", "o")
    constants = {"w": weight, "z": zero}
    model = graphs.typed([made], {"x": (kind, (rows, depth))}, {"o": "int32"}, constants)
    return model, weight.astype(np.int32), int(zero)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_sum_of_signed_pairs_overflows(kind, shape, emulated, tmp_path):
    proto, weight, zero = product(kind, *shape)
    x = RNG.choice(BYTES[kind], shape[:2]).astype(kind)
    x[0] = BYTES[kind][0]
    (found,) = on_board(proto, {"x": x}, emulated, tmp_path / "net.so")
    np.testing.assert_array_equal(found, (x.astype(np.int32) - zero) @ weight)


STEPS = [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.5, 1.5, -0.5, 2147483648.0, -2147483904.0, 3e9]


@pytest.mark.parametrize("zero", [np.uint8(0), np.uint8(128), np.int8(-128), np.int8(5)], ids=str)
def test_steps_are_narrowed_as_elsewhere(zero, emulated, tmp_path):
    nodes = [node("Relu", "x", "r"), node("QuantizeLinear", "r s z", "o")]
    constants = {"s": np.float32(1), "z": zero}
    proto = graphs.typed(nodes, {"x": ("float32", (8, 48))}, {"o": zero.dtype}, constants)
    x = np.rint(RNG.uniform(-300, 300, (8, 48)) * 2).astype(np.float32) / 2
    x[0, : len(STEPS)] = STEPS
    (found,) = on_board(proto, {"x": x}, emulated, tmp_path / "net.so")
    (wanted,) = built.run(proto, {"x": x})
    np.testing.assert_array_equal(found, wanted)


WINDOWS = {
    "of 3 x 3": ((3, 3), {"pads": [1] * 4}),
    "in steps": ((3, 3), {"pads": [1] * 4, "strides": [2, 2]}),
    "of 5 x 5": ((5, 5), {"pads": [2] * 4}),
    "of a line": ((1, 4), {"pads": [0, 1, 0, 2]}),
    "without a border": ((3, 2), {"dilations": [2, 1]}),
}


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize(("size", "given"), WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("channels", [32, 48, 20])
def test_no_sum_of_two_taps_overflows(kind, size, given, channels, emulated, tmp_path):
    """All bytes are as far from 0 as they can be, and of some channels so are all sums."""
    weight = RNG.choice(np.array([-127, 127], np.int8), (channels, 1, *size))
    weight[0], weight[1] = -127, 127
    zero = np.array(128 if kind == "uint8" else 0, kind)
    made = node("ConvInteger", "x w z", "o", group=channels, **given)
    constants = {"w": weight, "z": zero}
    x = {"x": (kind, (1, channels, 9, 10))}
    proto = graphs.typed([made], x, {"o": "int32"}, constants)
    x = RNG.choice(BYTES[kind], (1, channels, 9, 10)).astype(kind)
    x[:, :2] = BYTES[kind][0]
    (found,) = on_board(proto, {"x": x}, emulated, tmp_path / "net.so")
    (wanted,) = built.run(proto, {"x": x})
    np.testing.assert_array_equal(found, wanted)
