"""A refusal names the first node that is off, and a right library's nodes are all listed."""

import json

import numpy as np
import onnx
import pytest
from helpers.cli_inside import program
from helpers.cli_process import refused
from helpers.graphs import model, node, randn

from ansor_deploy._tvm import relax
from ansor_deploy.model.operators.operator import Operator
from ansor_deploy.model.operators.table import OPERATORS

CONSTANTS = {"w": randn(1, 8, 16), "v": randn(2, 16, 5)}
NODES = [
    node("MatMul", "x w", "a"),
    node("Tanh", "a", "b"),
    node("Celu", "b", "c", alpha=0.5),
    node("MatMul", "c v", "d"),
    node("Softmax", "d", "y"),
]


@pytest.fixture
def folder(tmp_path):
    onnx.save(model(NODES, {"x": (4, 8)}, constants=CONSTANTS), tmp_path / "net.onnx")
    return tmp_path


@pytest.fixture
def wrong_celu(monkeypatch):
    """Celu is computed as if its alpha were one."""

    def celu(call):
        zero, one = (relax.const(value, "float32") for value in (0.0, 1.0))
        below = relax.op.minimum(relax.op.exp(call.inputs[0]) - one, zero)
        return relax.op.maximum(call.inputs[0], zero) + below

    monkeypatch.setitem(OPERATORS, ("", "Celu"), Operator("Celu", since=12, convert=celu))


@pytest.mark.usefixtures("wrong_celu")
def test_the_first_node_that_is_off_is_named(folder):
    said = program(folder, "build", "net.onnx", "--trials", "0", "--registry", "r.db")
    assert said.returncode == 6
    text = " ".join(said.stderr.split())
    assert "The first node that is off is c (Celu): its c is off by" in text
    assert "output 'y' is off by" in text
    assert "it has the default schedule" in text
    assert not (folder / "net.so").exists()


@pytest.mark.usefixtures("wrong_celu")
def test_who_knows_better_builds_it_all_the_same(folder):
    words = ["--trials", "0", "--registry", "r.db", "--beside", "none", "--atol", "y=2"]
    refused(program(folder, "build", "net.onnx", *words, "--atol", "z=2"), 2, "no output 'z'")
    assert program(folder, "build", "net.onnx", *words).returncode == 0
    made = json.loads((folder / "net.json").read_text())
    assert made["verification"]["allowed"] == {"y": {"rtol": 0.0, "atol": 2.0}}
    assert program(folder, "verify", "net.so", "net.onnx").returncode == 6
    assert program(folder, "verify", "net.so", "net.onnx", "--atol", "2").returncode == 0
    refused(program(folder, "verify", "net.so", "net.onnx", "--atol", "z=2"), 2, "no output 'z'")
    for file, size, code in (("right", 0.0, 0), ("wrong", -1.0, 6)):  # Celu of 0 has no alpha
        np.save(folder / f"{file}.npy", np.full((4, 8), size, "float32"))
        said = program(folder, "verify", "net.so", "net.onnx", "--input", f"x={file}.npy")
        assert (said.returncode, "the inputs that were given" in said.stdout) == (code, True)
    given = ("verify", "net.so", "net.onnx", "--input", "x=right.npy", "--by-node")
    refused(program(folder, *given), 2, "--by-node is for seeded inputs")


def test_every_node_of_a_right_library_is_listed(folder):
    words = ["--trials", "0", "--registry", "r.db", "--beside", "none"]
    assert program(folder, "build", "net.onnx", *words).returncode == 0
    said = program(folder, "verify", "net.so", "net.onnx", "--by-node", "--json")
    assert said.returncode == 0
    nodes = json.loads(said.stdout)["nodes"]
    assert {one["name"]: one["op"] for one in nodes} == {n.name: n.op_type for n in NODES}
    assert all(one["ok"] and one["max_rel_err"] < 1e-5 for one in nodes)
