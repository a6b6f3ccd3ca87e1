"""A build proves what a quantised network computes in integers, also between islands of floats."""

import json

import numpy as np
import onnx
import pytest
from helpers.cli_inside import answer, program
from helpers.graphs import node, typed

from ansor_deploy._tvm import relax
from ansor_deploy.model.operators.operator import Operator
from ansor_deploy.model.operators.table import OPERATORS

RNG = np.random.default_rng(0)
# A step is two of the sums: every other one is a tie. What that makes of a softmax is not seen.
CONSTANTS = {
    "xs": np.float32(0.25), "xz": np.uint8(3), "ws": np.float32(0.5), "wz": np.int8(0),
    "ys": np.float32(0.25), "yz": np.uint8(7), "w": RNG.integers(-2, 3, (4, 3, 3, 3), np.int8),
    "ps": np.float32(1 / 256), "pz": np.uint8(0),
    "ds": np.float32(0.001),
}  # fmt: skip
WORDS = ("net.onnx", "-o", "net.so", "--registry", "r.db", "--trials", "0", "--beside", "none")


@pytest.fixture
def folder(tmp_path):
    """A convolution of bytes with a softmax behind it."""
    nodes = [
        node("QLinearConv", "x xs xz w ws wz ys yz", "c", pads=[1] * 4),
        node("DequantizeLinear", "c ds yz", "d"),
        node("Softmax", "d", "s", axis=3),
        node("QuantizeLinear", "s ps pz", "q"),
        node("DequantizeLinear", "q ps pz", "y"),
    ]
    ends = {"x": ("uint8", (1, 3, 16, 16))}, {"y": ("float32", (1, 4, 16, 16))}
    onnx.save(typed(nodes, *ends, CONSTANTS), tmp_path / "net.onnx")
    return tmp_path


def test_what_an_island_reads_is_proved(folder):
    answer(folder, "build", *WORDS)
    manifest = json.loads((folder / "net.json").read_text())
    (place,) = manifest["may_differ"]
    assert "Softmax" in {one["op"] for one in place["nodes"]}
    assert manifest["verify"]["exact"] == ["c"]


def test_halves_that_are_rounded_up_are_refused_and_named(folder, monkeypatch):
    def half_up(call):
        return relax.op.floor(relax.op.add(call.inputs[0], relax.const(0.5, "float32")))

    monkeypatch.setitem(OPERATORS, ("", "Round"), Operator("Round", convert=half_up))
    refused = program(folder, "build", *WORDS)
    assert refused.returncode == 6, refused.stderr
    assert "tensor 'c' is off by 1" in refused.stderr
    assert "The first node that is off is c (QLinearConv)" in refused.stderr
    assert not (folder / "net.so").exists()
