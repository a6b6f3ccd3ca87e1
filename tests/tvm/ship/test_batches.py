"""One library for a range of batches: any size in parts, which are those of fixed sizes."""

import json

import numpy as np
import onnx
import pytest
from helpers import graphs
from helpers.cli_inside import answer, program
from helpers.cli_process import refused

from ansor_deploy.errors import UsageError
from ansor_deploy.runtime import load
from ansor_deploy.ship.verify.tolerance import compare

BUILD = ("build", "net.onnx", "--trials", 0, "--input-shape", "x=1..7,3,8,8")
IMAGES = np.random.default_rng(0).standard_normal((7, 3, 8, 8), np.float32)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a network, and a library for one image to seven."""
    folder = tmp_path_factory.mktemp("shop")
    onnx.save(graphs.batches(), folder / "net.onnx")
    answer(folder, *BUILD, "--lock", "net.lock")
    return folder


@pytest.fixture(scope="module")
def model(shop):
    return load(shop / "net.so")


@pytest.fixture(scope="module")
def expected():
    return graphs.run(graphs.batches(), {"x": IMAGES})[0]


def test_any_size_is_right(model, expected):
    for rows in range(1, 8):
        have = model(x=IMAGES[:rows])["y"]
        assert have.shape == (rows, 256)
        assert compare(have, expected[:rows])[0]


def test_parts_have_the_bytes_of_fixed_sizes(model):
    first, second, third = (model(x=part)["y"] for part in (IMAGES[:4], IMAGES[4:6], IMAGES[6:]))
    assert np.array_equal(model(x=IMAGES)["y"], np.concatenate([first, second, third]))


def test_parts_are_written_where_the_caller_wants_them(model):
    made = np.full((7, 256), np.nan, np.float32)
    model.run_into({"y": made[1:6]}, x=IMAGES[1:6])
    assert np.array_equal(made[1:6], model(x=IMAGES[1:6])["y"])
    assert np.isnan(made[[0, 6]]).all()


def test_other_batches_are_refused(shop, model):
    for shape in ((8, 3, 8, 8), (0, 3, 8, 8), (3, 3, 9, 8)):
        with pytest.raises(UsageError) as caught:
            model(x=np.zeros(shape, np.float32))
        assert f"x: float32{list(shape)} given" in caught.value.text
        assert caught.value.hint == "it takes x: float32[1..7, 3, 8, 8]"
    with pytest.raises(UsageError, match="outputs of"):
        model.run_into({"y": np.zeros((4, 256), np.float32)}, x=IMAGES[:5])


def test_commands_know_the_range(shop):
    manifest = json.loads((shop / "net.json").read_text())
    assert manifest["model"]["input_shapes"] == {"x": ["1..7", 3, 8, 8]}
    assert [one["inputs"][0]["shape"][0] for one in manifest["variants"]] == [1, 2, 4]
    assert (manifest["batch"]["least"], manifest["batch"]["most"]) == (1, 7)
    assert answer(shop, "verify", "net.so", "net.onnx")["ok"]
    np.save(shop / "x.npy", IMAGES[:3])
    (y,) = answer(shop, "run", "net.so", "--input", "x=x.npy")["outputs"]
    assert y["shape"] == [3, 256]
    assert answer(shop, "verify", "net.so", "net.onnx", "--input", "x=x.npy")["ok"]


@pytest.mark.slow
def test_it_is_up_to_date_for_this_range_only(shop):
    frozen = ("--lock", "net.lock", "--frozen", "-o", "frozen.so")
    assert not answer(shop, *BUILD, *frozen)["up_to_date"]
    assert answer(shop, *BUILD, *frozen)["up_to_date"]
    rebuilt = ("verify", "frozen.so", "net.onnx", "--rebuild", "--lock", "net.lock")
    assert answer(shop, *rebuilt)["ok"]
    other = ("--input-shape", "x=1..6,3,8,8")
    assert not answer(shop, *BUILD[:-2], *other, *frozen)["up_to_date"]


def test_a_wrong_part_is_found(tmp_path):
    """Of a library that says it takes parts where rows hang together, as in a mean over them."""
    nodes = [graphs.node("ReduceMean", "x", "m", axes=[0]), graphs.node("Sub", "x m", "y")]
    net = graphs.model(nodes, {"x": ("n", 8)})
    onnx.save(net, tmp_path / "net.onnx")
    words = ("build", "net.onnx", "--trials", 0, "-o", "net.so")
    refused(program(tmp_path, *words, "--input-shape", "x=1..3,8"), 3, "ReduceMean", "at once")
    sizes = ("--input-shape", "x=1,8", "--input-shape", "x=2,8")
    answer(tmp_path, *words, *sizes)
    known = json.loads((tmp_path / "net.json").read_text())
    known["batch"] = {"least": 1, "most": 3, "inputs": ["x"], "part": 1}
    (tmp_path / "net.json").write_text(json.dumps(known))
    said = program(tmp_path, "verify", "net.so", "net.onnx")
    assert (said.returncode, "at [2, " in said.stdout) == (6, True)
