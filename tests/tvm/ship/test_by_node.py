"""A refusal names the first node that is off, and a right library's nodes are all listed."""

import json
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from helpers.built import HOST
from helpers.cli_inside import program
from helpers.cli_process import refused
from helpers.graphs import model, node, randn

from ansor_deploy._tvm import relax
from ansor_deploy.model.operators.operator import Operator
from ansor_deploy.model.operators.table import OPERATORS
from ansor_deploy.model.prepare import prepare
from ansor_deploy.ship.verify import reduce

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
def test_the_part_that_is_off_is_written_and_is_wrong_by_itself(folder):
    words = ["--trials", "0", "--registry", "r.db", "--beside", "none"]
    said = program(folder, "build", "net.onnx", *words, "--reduce", "part.onnx")
    assert (said.returncode, "wrote part.onnx\n" in said.stderr) == (6, True)
    part = onnx.load(folder / "part.onnx")
    assert [one.op_type for one in part.graph.node] == ["Celu"]
    assert {one.name for one in part.graph.input} == {"b"}
    onnx.checker.check_model(part)
    assert program(folder, "build", "part.onnx", *words, "--no-verify").returncode == 0
    again = program(folder, "verify", "part.so", "part.onnx", "--input", "part.onnx.npz")
    assert (again.returncode, "output 'c' is off" in again.stdout) == (6, True)


@pytest.mark.parametrize(
    ("culprit", "read"), [("Celu", "b"), ("Tanh", "a"), ("MatMul", "x"), ("Softmax", "")]
)
def test_a_part_grows_until_it_is_wrong(folder, monkeypatch, culprit, read):
    def judged(part, feed, how):
        right = culprit not in {one.op_type for one in part.graph.node}
        return {"c": SimpleNamespace(ok=right)}

    monkeypatch.setattr(reduce, "compared", judged)
    net, output = prepare(folder / "net.onnx", HOST), folder / "part.onnx"
    files = reduce.write_reduced(net, "c", SimpleNamespace(seed=0), output)
    assert files == ([output, folder / "part.onnx.npz"] if read else [])
    if read:
        (value,) = onnx.load(output).graph.input
        with np.load(files[1]) as inputs:
            assert [*inputs] == [read] == [value.name]
            most = np.abs(inputs["b"]).max() if read == "b" else 0.0
        assert most <= 1.0  # values of Tanh, and not what is drawn


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
