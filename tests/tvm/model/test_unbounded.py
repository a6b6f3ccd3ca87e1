"""Sizes that a run computes of its data get the usual room, and a run that needs more fails."""

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, compiled, imported
from helpers.cli_inside import program
from helpers.graphs import node
from onnx import TensorProto

from ansor_deploy.devices.bare import open_bare
from ansor_deploy.errors import UsageError
from ansor_deploy.model.counted.unbounded import USUAL_ROOM

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
# As many frames as durations say, padded to a multiple of four: twice, as an exporter writes it.
FRAMES = [
    node("Ceil", "x", "whole"), node("ReduceSum", "whole", "sum", keepdims=0),
    node("Clip", "sum low", "least"), node("Cast", "least", "n", to=INT64),
    node("Cast", "n", "as_float", to=FLOAT), node("Div", "as_float four", "quarter"),
    node("Ceil", "quarter", "quarters"), node("Mul", "quarters four", "padded"),
    node("Cast", "padded", "one", to=INT64), node("Cast", "padded", "two", to=INT64),
    node("Range", "none one step", "places"), node("Range", "none two step", "others"),
    node("Add", "places others", "both"), node("Less", "both n", "inside"),
    node("Cast", "inside", "mask", to=FLOAT), node("Reshape", "mask rows", "y"),
    node("Reshape", "n list", "size"), node("ConstantOfShape", "size", "zeros"),
]  # fmt: skip
CONSTANTS = {
    "four": np.float32(4), "low": np.float32(1), "none": np.array(0), "step": np.array(1),
    "rows": np.array([1, -1, 4]), "list": np.array([1]),
}  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    constants = {name: np.asarray(value) for name, value in CONSTANTS.items()}
    proto = graphs.typed(FRAMES, {"x": (FLOAT, [5])}, {"y": FLOAT, "zeros": FLOAT}, constants)
    (interface,) = imported(proto).interfaces
    path = tmp_path_factory.mktemp("unbounded") / "model.so"
    compiled(proto).export(path, HOST)
    with open_bare() as bare:
        yield proto, bare.load(path, {**interface.to_json(), "target": HOST.to_json()})


@pytest.mark.parametrize("each", [-1.0, 0.2, 1.7, 200.0])
def test_a_size_has_room_for_what_a_run_computes(each, library):
    proto, loaded = library
    feed = {"x": np.full(5, each, np.float32)}
    for made, expected in zip(loaded(**feed).values(), graphs.run(proto, feed), strict=True):
        np.testing.assert_array_equal(made, expected)


def test_a_run_that_needs_more_room_fails(library):
    _, loaded = library
    with pytest.raises(
        UsageError, match=f"a size that the model computes is not in 1 .. {USUAL_ROOM}"
    ):
        loaded(x=np.full(5, USUAL_ROOM, np.float32))


def test_a_size_that_is_read_twice_at_each_step_is_sought_once():
    doublings = [node("Add", f"n{at} n{at}", f"n{at + 1}") for at in range(40)]
    last = [node("ReduceMax", "n40", "n", keepdims=0), node("Range", "none n step", "y")]
    steps = [node("Cast", "x", "n0", to=INT64), *doublings, *last]
    constants = {"none": np.array(0), "step": np.array(1)}
    proto = graphs.typed(steps, {"x": (FLOAT, [2])}, {"y": INT64}, constants)
    assert imported(proto).interfaces[0].outputs[0].shape == (USUAL_ROOM,)


def spoken(folder, tokens):
    """Build a model of which each token lasts for about ten frames, and more than the usual room.

    tokens: the number of tokens, or a range.
    """
    steps = [
        node("Sigmoid", "x", "s"), node("Mul", "s twenty", "d"), node("Ceil", "d", "whole"),
        node("ReduceSum", "whole", "sum", keepdims=0), node("Cast", "sum", "n", to=INT64),
        node("Range", "none n step", "y"),
    ]  # fmt: skip
    constants = {"twenty": np.float32(20), "none": np.array(0), "step": np.array(1)}
    proto = graphs.typed(steps, {"x": (FLOAT, ["n"])}, {"y": INT64}, constants)
    (folder / "net.onnx").write_bytes(proto.SerializeToString())
    words = ("--trials", "0", "-o", "net.so", "--input-shape", f"x={tokens}")
    return program(folder, "build", "net.onnx", *words)


def test_lengths_that_need_more_room_are_not_verified_and_others_are(tmp_path):
    done = spoken(tmp_path, "1..160")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "outputs agree" in said
    assert "not verified, since no inputs chose it: a run of x=160 that needs no more room" in said


def test_a_library_that_has_room_for_no_run_is_not_written(tmp_path):
    done = spoken(tmp_path, "160")
    assert done.returncode == 3
    assert "need more room than the library has" in " ".join(done.stderr.split())
    assert not (tmp_path / "net.so").exists()
