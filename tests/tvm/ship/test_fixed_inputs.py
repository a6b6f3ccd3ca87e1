"""A library of the branch that an input chooses, which is a constant of it."""

import json

import numpy as np
import onnx
import pytest
from helpers.cli_inside import program
from helpers.graphs import either, node, typed

from ansor_deploy.runtime import load

BUILD = ("build", "net.onnx", "--trials", 0, "--beside", "none", "--input-shape", "wide==true")


def network():
    """Branches of inputs of which each takes its own size of x."""
    weights = {n: np.arange(n * 2, dtype=np.float32).reshape(n, 2) for n in (3, 5)}
    then, other = ([node("MatMul", f"x w{n}", f"y{n}")] for n in (5, 3))
    constants = {f"w{n}": array for n, array in weights.items()}
    inputs = {"x": (onnx.TensorProto.FLOAT, (2, "n")), "wide": (onnx.TensorProto.BOOL, ())}
    outputs = {"y": (onnx.TensorProto.FLOAT, (2, 2))}
    return typed([either("wide", "y", then, other)], inputs, outputs, constants)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a library of one branch."""
    folder = tmp_path_factory.mktemp("branch")
    onnx.save(network(), folder / "net.onnx")
    made = program(folder, *BUILD, "--lock", "net.lock")
    assert made.returncode == 0, made.stderr
    return folder


def test_it_has_the_code_of_that_branch_alone(folder):
    x = np.ones((2, 5), np.float32)
    assert load(folder / "net.so")(x=x)["y"].tolist() == [[20, 25]] * 2
    assert "is up to date" in program(folder, *BUILD, "--lock", "net.lock").stdout
    assert json.loads((folder / "net.json").read_text())["model"]["input_shapes"] == {
        "wide": ["=true"]
    }


def test_what_has_the_model_again_has_the_constant_too(folder):
    for words in (
        (*BUILD, "--lock", "net.lock", "--frozen"),
        ("verify", "net.so", "net.onnx"),
        ("verify", "net.so", "net.onnx", "--by-node"),
        ("verify", "net.so", "net.onnx", "--rebuild", "--lock", "net.lock"),
        ("bench", "net.so", "--beside", "onnxruntime", "--time", "0.1s"),
    ):
        made = program(folder, *words)
        assert made.returncode == 0, made.stderr


def test_another_value_is_another_library(folder):
    made = program(folder, *BUILD[:-1], "wide==false", "-o", "narrow.so")
    assert made.returncode == 0, made.stderr
    assert load(folder / "narrow.so")(x=np.ones((2, 3), np.float32))["y"].tolist() == [[6, 9]] * 2
