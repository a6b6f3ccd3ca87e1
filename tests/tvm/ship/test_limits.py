"""What a library takes is said, and a library that takes more than it may is not written."""

import json

import onnx
import pytest
from helpers import graphs
from helpers.cli_inside import answer, program
from helpers.cli_process import refused

WEIGHTS = 4 * (200 * 300 + 300)
BUILD = ("build", "net.onnx", "-o", "out/net.so", "--trials", 0)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a network, its library, and the manifest of that."""
    folder = tmp_path_factory.mktemp("shop")
    nodes = [graphs.node("MatMul", "x w", "h"), graphs.node("Add", "h b", "y")]
    constants = {"w": graphs.randn(0, 200, 300), "b": graphs.randn(1, 300)}
    onnx.save(graphs.model(nodes, {"x": (500, 200)}, constants=constants), folder / "net.onnx")
    answer(folder, *BUILD)
    return folder


@pytest.fixture(scope="module")
def figures(shop):
    return json.loads((shop / "out/net.json").read_text())["memory"]


def test_the_manifest_says_what_a_library_takes(shop, figures):
    assert figures["library"] == (shop / "out/net.so").stat().st_size
    assert WEIGHTS <= figures["weights"] < figures["library"]
    inputs, outputs = 4 * 500 * 200, 4 * 500 * 300
    assert outputs <= figures["workspace"]
    assert figures["peak"] == figures["library"] + inputs + figures["workspace"]


def test_the_answer_and_the_text_of_a_build_say_it(shop, figures):
    assert answer(shop, *BUILD)["memory"] == figures
    (shop / "out/net.json").unlink()
    said = " ".join(program(shop, *BUILD).stderr.split())
    kilobytes = f"{figures['library'] / 1e3:.3g} kB (weights {figures['weights'] / 1e3:.3g} kB)"
    assert f"library {kilobytes}, workspace" in said


def test_a_plan_says_what_is_known_before(shop, figures):
    (planned,) = answer(shop, "plan", "net.onnx")["memory"]
    assert WEIGHTS <= planned["weights"] <= figures["weights"]
    assert 0 < planned["peak"] <= figures["peak"]
    said = program(shop, "plan", "net.onnx").stdout
    assert f"memory   weights {planned['weights'] / 1e3:.3g} kB, tensors " in said


def before(shop):
    return {path.name: path.read_bytes() for path in (shop / "out").iterdir()}


@pytest.mark.parametrize(
    ("option", "limit", "named"),
    [
        ("--max-size", WEIGHTS - 1, "weights float32[200, 300] of matmul_add"),
        ("--max-size", None, "code"),
        ("--max-memory", WEIGHTS + 1, "float32[500, 300] of matmul_add"),
    ],
    ids=["weights", "code", "memory"],
)
def test_a_library_that_takes_too_much_is_not_written(shop, figures, option, limit, named):
    """The second has room for its weights: what is too much is known when it is linked."""
    there = before(shop)
    result = program(shop, *BUILD, option, f"{limit or figures['library'] - 1}B")
    refused(result, 1, "net.onnx: error: ", f"{option} allows", "no library was written", named)
    assert before(shop) == there


def test_what_is_within_its_limits_is_up_to_date(shop, figures):
    limits = ("--max-size", f"{figures['library']}B", "--max-memory", f"{figures['peak']}B")
    assert answer(shop, *BUILD, *limits)["up_to_date"]
