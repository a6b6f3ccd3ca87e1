"""Libraries for a board that is not at hand, run on this machine by QEMU's user mode."""

import json

import numpy as np
import onnx
import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.graphs import model, node, randn, typed
from onnx import TensorProto, helper

from ansor_deploy.devices import emulator
from ansor_deploy.errors import VerificationError
from ansor_deploy.model.operators.operator import Operator
from ansor_deploy.model.operators.table import OPERATORS
from ansor_deploy.ship.verify.stand_in import EMULATED_FLOPS
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

BOARD = load_target("rpi3", [shipped("targets")])
EMULATED = {"verified": True, "where": "under qemu-aarch64", "reason": None, "allowed": {}}
BUILD = ("build", "net.onnx", "--target", "rpi3", "--registry", "r.db")


@pytest.fixture
def folder(tmp_path, emulated):
    """An empty folder, where a board is emulated."""
    assert emulated.name == "qemu-aarch64"
    return tmp_path


def test_a_library_of_several_kinds_and_shapes_is_run_as_it_is(folder):
    nodes = [
        *(node("MatMul", "x w", "h"), node("Relu", "h", "y")),
        *(node("Greater", "x h", "b"), node("Cast", "y", "i", to=TensorProto.INT64)),
    ]
    proto = model(nodes, {"x": ("n", 16)}, ["y", "b", "i"], {"w": randn(0, 16, 16)})
    kinds = (TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64)
    for value, kind in zip(proto.graph.output, kinds, strict=True):
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, ("n", 16)))
    onnx.save(proto, folder / "net.onnx")
    shapes = ("--input-shape", "x=3,16", "--input-shape", "x=5,16")
    made = answer(folder, *BUILD, *shapes)
    assert (made["verification"], made["verify"]["ok"]) == (EMULATED, True)
    assert made["ran_on"] is None
    assert answer(folder, *BUILD, *shapes)["up_to_date"]
    assert answer(folder, "verify", "net.so", "net.onnx")["ok"]
    np.save(folder / "x.npy", -np.ones((3, 16), "float32"))
    ran = answer(folder, "run", "net.so", "--input", "x=x.npy", "-o", "out.npz")
    assert [one["shape"] for one in ran["outputs"]] == [[3, 16]] * 3


def test_it_refuses_an_index_as_it_does_elsewhere(folder):
    """Verification asks for the row beyond the last, and for NaN where two values are compared."""
    nodes = [node("Gather", "rows ids", "r"), node("Add", "r x", "t"), node("Max", "t x", "y")]
    rows = ("float32", (3, 16))
    inputs = {"ids": ("int64", (3,)), "x": rows}
    proto = typed(nodes, inputs, {"y": rows}, {"rows": randn(0, 9, 16)})
    onnx.save(proto, folder / "net.onnx")
    made = answer(folder, *BUILD)
    assert (made["verification"], made["verify"]["ok"]) == (EMULATED, True)


def test_a_library_that_is_wrong_or_none_is_not_written(folder, monkeypatch):
    def identity(_graph, given):
        return [helper.make_node("Identity", [given.input[0]], list(given.output))]

    onnx.save(model([node("Relu", "x", "y")], {"x": (64,)}), folder / "net.onnx")
    monkeypatch.setitem(OPERATORS, ("", "Relu"), Operator("Relu", rewrite=identity))
    refused(program(folder, *BUILD), 6, "differs from", "no library was written")
    assert not (folder / "net.so").exists()
    (folder / "net.so").write_bytes(b"\x7fELF")
    info = {"name": "x", "shape": [1], "dtype": "float32"}
    manifest = {"inputs": [info], "outputs": [info], "target": BOARD.to_json()}
    with emulator.open_emulator(BOARD) as found, pytest.raises(VerificationError) as caught:
        found.load(folder / "net.so", manifest)(x=np.zeros(1, np.float32))
    assert "does not run under qemu-aarch64" in caught.value.message


def test_what_would_take_an_emulator_long_has_a_stand_in(folder):
    n = 1 << (round(EMULATED_FLOPS) // 2).bit_length() // 3  # n cubed is half of it, at least
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h w", "i"), node("MatMul", "i w", "y")]
    proto = model(nodes, {"x": (n, n)}, constants={"w": randn(0, n, n) / n})
    onnx.save(proto, folder / "net.onnx")
    answer(folder, *BUILD)
    manifest = json.loads((folder / "net.json").read_text())
    assert manifest["verification"]["where"] == "this machine, untuned"
