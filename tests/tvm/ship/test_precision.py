"""Convolutions by Winograd's algorithm in a build: in the manifest, forbidden, and given up."""

import json

import numpy as np
import onnx
import pytest
from helpers.cli_inside import program
from helpers.graphs import model, node, randn

CORE = 'extends = "host"\ndescription = "one core"\ncores = 1\n'


def convolution(*nodes):
    weights = {"w": randn(0, 32, 32, 3, 3), "zero": np.float32(0), "six": np.float32(6)}
    conv = node("Conv", "x w", "h", pads=[1, 1, 1, 1])
    return model([conv, *nodes], {"x": (1, 32, 28, 28)}, constants=weights)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("precision")
    (place / "ansor-deploy.toml").write_text("")
    (place / "targets").mkdir()
    (place / "targets" / "core.toml").write_text(CORE)
    onnx.save(convolution(node("Relu", "h", "y")), place / "relu.onnx")
    onnx.save(convolution(node("Clip", "h zero six", "y")), place / "clip.onnx")
    return place


def build(folder, name, *words):
    """(how each task of the manifest is rewritten, its precision, what was said)."""
    words = (f"{name}.onnx", "-o", f"{name}.so", "--registry", "r.db", *words)
    done = program(folder, "build", *words, "--target", "core", "--trials", "0")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((folder / f"{name}.json").read_text())
    rewritings = [task["rewriting"] for task in manifest["tasks"] if task["rewriting"]]
    return rewritings, manifest["precision"], done.stderr + done.stdout


def test_the_manifest_says_which_tasks_are_rewritten_unless_that_is_forbidden(folder):
    (rewriting,), precision, _ = build(folder, "relu")
    assert rewriting.startswith("winograd ")
    assert precision == "default"
    assert build(folder, "relu", "--precision", "strict")[:2] == ([], "strict")


def test_numbers_that_are_wrong_because_of_it_are_computed_directly(folder):
    """Winograd's tile around an infinity is NaN, where the bounds would have made it a number."""
    rewritings, precision, said = build(folder, "clip")
    assert (rewritings, precision) == ([], "strict")
    assert "as with --precision strict" in said
    assert "is up to date" in build(folder, "clip")[2]
