"""One library for a range of lengths, from the command line to Python, C and a package."""

import json
import tarfile

import numpy as np
import onnx
import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.graphs import likeness, node, randn, run
from helpers.graphs import model as graph

from ansor_deploy.errors import UsageError
from ansor_deploy.runtime import load

WIDTH = 16
BUILD = ("build", "net.onnx", "--trials", 0, "--input-shape", f"x=1,1..24,{WIDTH}")


def network():
    """Rows that are mixed by their likeness, in the way of attention."""
    nodes = [node("MatMul", "x w", "q"), *likeness("q", "x"), node("MatMul", "p x", "y")]
    return graph(nodes, {"x": (1, "n", WIDTH)}, constants={"w": randn(0, WIDTH, WIDTH)}, opset=18)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with the network, and a library for any length up to 24."""
    folder = tmp_path_factory.mktemp("shop")
    onnx.save(network(), folder / "net.onnx")
    answer(folder, *BUILD, "--lock", "net.lock", "--header")
    return folder


@pytest.fixture(scope="module")
def model(shop):
    return load(shop / "net.so")


def rows(length):
    return randn(length, 1, length, WIDTH)


def test_any_length_is_right_and_as_long_as_its_input(model):
    for length in (24, 13, 1, 2):
        (want,) = run(network(), {"x": rows(length)})
        have = model(x=rows(length))["y"]
        assert have.shape == want.shape
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


def test_what_lies_behind_changes_no_byte(model):
    """Not even where a call before it left NaN there."""
    before = model(x=rows(5))["y"]
    for length in (24, 23):  # the former lies in no room of its own
        model(x=np.full((1, length, WIDTH), np.nan, np.float32))
    assert np.array_equal(model(x=rows(5))["y"], before)


def test_other_lengths_are_refused(shop, model):
    for shape in ((1, 25, WIDTH), (1, 0, WIDTH), (2, 3, WIDTH)):
        with pytest.raises(UsageError) as caught:
            model(x=np.zeros(shape, np.float32))
        assert caught.value.hint == f"it takes x: float32[1, 1..24, {WIDTH}]"
    np.save(shop / "x.npy", rows(25))
    ended = program(shop, "run", "net.so", "--input", "x=x.npy")
    refused(ended, 2, f"it takes x: float32[1, 1..24, {WIDTH}]")


def test_results_are_written_to_memory_with_room_for_the_most(model):
    made = {info.name: np.zeros(info.shape, info.dtype) for info in model.outputs}
    model.run_into(made, x=rows(9))
    assert int(made["y.length"]) == 9
    assert np.array_equal(made["y"][:, :9], model(x=rows(9))["y"])


def test_the_manifest_says_it_and_a_frozen_build_has_the_same_bytes(shop):
    manifest = json.loads((shop / "net.json").read_text())
    (found,) = manifest["ranges"]
    assert (found["least"], found["most"], found["step"]) == (1, 24, 1)
    assert (found["length"], found["places"]) == ("length", [["x", 1]])
    assert manifest["model"]["input_shapes"] == {"x": [1, "1..24", WIDTH]}
    answer(shop, *BUILD, "--lock", "net.lock", "--frozen", "-o", "again.so")
    assert (shop / "again.so").read_bytes() == (shop / "net.so").read_bytes()


def test_it_is_verified_benched_profiled_and_packaged(shop):
    assert answer(shop, "verify", "net.so", "net.onnx")["ok"]
    variants = answer(shop, "bench", "net.so", "--time", "0.1s")["variants"]
    assert [one["inputs"]["x"][1] for one in variants] == [24, 15, 1]
    profiled = answer(shop, "profile", "net.so", "--time", "0.1s")
    assert "variants" not in profiled
    assert any(one["flops"] for one in profiled["kernels"])
    shorter = answer(shop, "profile", "net.so", "--time", "0.1s", "--input-shape", f"x=1,7,{WIDTH}")
    assert [one["name"] for one in shorter["kernels"]] == [
        one["name"] for one in profiled["kernels"]
    ]
    assert {(one["flops"], one["limit"]) for one in shorter["kernels"]} == {(None, None)}
    for shape, why in {"x=1,25,16": "x: float32[1, 1..24, 16]", "x=1,2..3,16": "one size"}.items():
        refused(program(shop, "profile", "net.so", "--input-shape", shape), 2, why)
    np.save(shop / "x.npy", rows(7))
    program(shop, "run", "net.so", "--input", "x=x.npy", "-o", "out.npz")
    assert np.load(shop / "out.npz")["y"].shape == (1, 7, WIDTH)


def test_a_package_for_c_says_what_a_program_gives(shop):
    answer(shop, "package", "net.so", "--for", "c", "-o", "net.tar.gz")
    with tarfile.open(shop / "net.tar.gz") as packed:
        text = packed.extractfile("net/README").read().decode()
    assert f"takes x: float32[1, 24, {WIDTH}], length: int64[]\n" in text
    assert "./run net.so input-0 input-1 output-0 output-1\n" in text


def test_a_range_that_the_model_does_not_take_is_refused_by_its_node(tmp_path):
    odd = graph([node("LpPool", "x", "y", kernel_shape=[2])], {"x": (2, 1, "n")})
    onnx.save(odd, tmp_path / "net.onnx")
    ended = program(tmp_path, "build", "net.onnx", "--input-shape", "x=2,1,2..8")
    refused(ended, 3, "node 'y'")


def test_a_size_is_fixed_where_nobody_asked_for_a_range_that_is_refused(tmp_path):
    odd = graph([node("LpPool", "x", "y", kernel_shape=[2])], {"x": (2, 1, "n")})
    onnx.save(odd, tmp_path / "net.onnx")
    answer(tmp_path, "build", "net.onnx", "--trials", 0)
    assert load(tmp_path / "net.so").interfaces[0].input_shapes == {"x": (2, 1, 128)}


def test_rows_that_become_parts_of_others(tmp_path):
    """What counts lies elsewhere then, and is looked for."""
    proto = graph([node("Reshape", "x form", "r"), node("Sqrt", "r", "y")], {"x": (2, "n", 3)},
                  constants={"form": np.array([3, -1])})  # fmt: skip
    onnx.save(proto, tmp_path / "net.onnx")
    answer(tmp_path, "build", "net.onnx", "--trials", 0, "--input-shape", "x=2,2..8,3")
    made = load(tmp_path / "net.so")
    for length in (8, 3, 2):
        x = np.abs(randn(length, 2, length, 3))
        np.testing.assert_allclose(made(x=x)["y"], run(proto, {"x": x})[0], rtol=1e-6)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A folder with a detector's likeness, and a library for images of any size in steps."""
    folder = tmp_path_factory.mktemp("images")
    onnx.save(detector(), folder / "net.onnx")
    answer(folder, "build", "net.onnx", "--trials", 0, "--input-shape", "x=1,4,8..32:4,8..24:4")
    return load(folder / "net.so")


def detector():
    """Rows of two scales, each of places of an image, behind one another."""
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", "c", "fine"),
        node("MaxPool", "fine", "coarse", kernel_shape=[2, 2], strides=[2, 2]),
        node("Resize", "coarse - twice", "up", mode="nearest"),
        node("Add", "up fine", "both"),
        node("Reshape", "both form", "a"),
        node("Reshape", "coarse form", "b"),
        node("Concat", "a b", "y", axis=2),
    ]
    constants = {
        "w": randn(0, 4, 4, 3, 3),
        "twice": np.array([1, 1, 2, 2], np.float32),
        "form": np.array([0, 0, -1]),
    }
    return graph(nodes, {"x": (1, 4, "high", "wide")}, constants=constants, opset=18)


@pytest.mark.parametrize("size", [(32, 24), (8, 8), (12, 24), (32, 8), (20, 12)])
def test_images_of_any_size(images, size):
    x = randn(1, 1, 4, *size)
    images(x=np.full((1, 4, 32, 24), np.nan, np.float32))
    have, (want,) = images(x=x)["y"], run(detector(), {"x": x})
    assert have.shape == want.shape
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)


def test_equal_builds_have_equal_bytes(images, tmp_path):
    """Whatever lies where in memory: kernels of images take several lengths."""
    onnx.save(detector(), tmp_path / "net.onnx")
    answer(tmp_path, "build", "net.onnx", "--trials", 0, "--input-shape", "x=1,4,8..32:4,8..24:4")
    assert (tmp_path / "net.so").read_bytes() == images.path.read_bytes()


def test_a_program_that_gives_a_size_between_the_steps_is_stopped(images):
    given = [np.zeros((1, 4, 32, 24), np.float32), np.array(14), np.array(8)]
    made = [np.zeros(info.shape, info.dtype) for info in images.outputs]
    with pytest.raises(UsageError, match=r"what its steps leave is not in 0 \.\. 0"):
        images._call(0, given, made)  # as C does, of which no length is taken from an array


def test_sizes_between_the_steps_are_refused(images):
    with pytest.raises(UsageError, match="do not fit") as caught:
        images(x=randn(1, 1, 4, 14, 8))
    assert caught.value.hint == "it takes x: float32[1, 4, 8..32:4, 8..24:4]"
    assert [info.name for info in images.called.inputs] == ["x", "high", "wide"]


def test_a_range_that_begins_with_too_little_is_refused_by_its_node(tmp_path):
    wide = graph([node("Conv", "x w", "y")], {"x": (1, 4, "n")}, constants={"w": randn(0, 4, 4, 3)})
    onnx.save(wide, tmp_path / "net.onnx")
    ended = program(tmp_path, "build", "net.onnx", "--input-shape", "x=1,4,2..8")
    refused(
        ended, 3, "with the smallest size of the range, node 'y' (Conv) takes 3 at once, and gets 2"
    )
