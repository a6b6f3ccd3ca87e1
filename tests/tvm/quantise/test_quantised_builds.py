"""`build --precision int8`: the quantised model beside its library, made once for the same."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers.cli_inside import answer, program
from helpers.graphs import model, node, randn
from onnx import TensorProto

from ansor_deploy.errors import ModelError
from ansor_deploy.model.onnx.file import load
from ansor_deploy.quantise.quantiser import quantise

CORE = 'extends = "host"\ndescription = "one core"\ncores = 1\n'
COMMON = ("--registry", "r.db", "--target", "core", "--trials", "0")
INT8 = ("--precision", "int8", "--calibrate")


def network(seed=0):
    weights = {f"w{at}": randn(at + seed, 8, 8, 3, 3) / 8 for at in range(3)}
    nodes = [
        node("Conv", "x w0", "first", pads=[1] * 4),
        node("Relu", "first", "relu"),
        node("Conv", "relu w1", "second", pads=[1] * 4),
        node("Conv", "second w2", "y", pads=[1] * 4),
    ]
    return model(nodes, {"x": (1, 8, 16, 16)}, constants=weights)


def furnish(folder):
    (folder / "ansor-deploy.toml").write_text("")
    (folder / "targets").mkdir()
    (folder / "targets" / "core.toml").write_text(CORE)
    onnx.save(network(), folder / "net.onnx")
    np.savez(folder / "samples.npz", x=randn(0, 6, 1, 8, 16, 16))
    return folder


@pytest.fixture
def folder(tmp_path):
    return furnish(tmp_path)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A folder after a build, and the build's answer."""
    folder = furnish(tmp_path_factory.mktemp("first"))
    return folder, build(folder)


@pytest.fixture
def built(first, tmp_path):
    """A copy of the folder of `first`."""
    return Path(shutil.copytree(first[0], tmp_path / "built"))


def build(folder, *words, model="net.onnx", samples="samples.npz"):
    """The answer of a build that quantises, untuned, into out/net.so."""
    words = (model, "-o", "out/net.so", *COMMON, *INT8, samples, *words)
    return answer(folder, "build", *words)


def times(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "out").iterdir()}


def test_the_quantised_model_is_built_and_described(first):
    folder, found = first[0], first[1]["quantised"]
    assert not first[1]["up_to_date"]
    made = onnx.load(folder / "out" / "net.int8.onnx")
    assert sum(one.op_type == "QuantizeLinear" for one in made.graph.node) >= 3
    assert json.loads((folder / "out" / "net.int8.json").read_text()) == found
    manifest = json.loads((folder / "out" / "net.json").read_text())
    assert manifest["model"]["name"] == "net.int8.onnx"
    assert manifest["model"]["sha256"] == found["quantised"]["sha256"]
    assert manifest["verification"]["verified"]
    assert manifest["may_differ"] == []
    assert manifest["verify"]["exact"] == [one["name"] for one in manifest["outputs"]]
    (output,) = found["outputs"]
    assert output["output"] == "y"
    assert 0 < output["rms"] < 0.05
    assert (found["samples"], found["compared"]) == (6, 6)
    assert {one["name"] for one in found["layers"]} <= {"first", "second", "y"}
    assert found["layers"][0]["share"] > 0.01
    assert found["quantised"]["bytes"] < found["float_bytes"]
    gain = found["gain"]
    assert gain["library"] == manifest["artifact"]["sha256"]
    assert gain["int8_ms"] / gain["float_ms"] == pytest.approx(gain["ratio"])
    assert gain["float_bytes"] > 3 * 8 * 8 * 9 * 4


def test_an_unchanged_build_does_nothing(first, built):
    before = times(built)
    again = build(built)
    assert again["up_to_date"]
    assert again["quantised"] == first[1]["quantised"]
    assert times(built) == before


def quantised_again(first, folder, *words, **more):
    """What is said of a model that a change makes another; the next build does nothing."""
    changed = build(folder, *words, **more)
    assert not changed["up_to_date"]
    assert changed["quantised"]["identity"] != first[1]["quantised"]["identity"]
    assert build(folder, *words, **more)["up_to_date"]
    return changed["quantised"]


def test_a_changed_model_is_quantised_again(first, built):
    onnx.save(network(seed=5), built / "net.onnx")
    quantised_again(first, built)


def test_a_lost_or_changed_quantised_model_is_made_again(first, built):
    before = first[1]["quantised"]["quantised"]
    made = built / "out" / "net.int8.onnx"
    made.write_bytes(made.read_bytes() + b"\x00")
    assert build(built)["quantised"]["quantised"] == before
    made.unlink()
    assert build(built)["quantised"]["quantised"] == before
    (built / "out" / "net.int8.json").write_text("{}")
    assert build(built)["quantised"]["quantised"] == before


def test_layers_are_kept_by_name(first, built):
    found = quantised_again(first, built, "--keep-float", "second", "--keep-float", "y")
    assert found["kept"] == ["second", "y"]
    kinds = {
        one.name: one.data_type
        for one in onnx.load(built / "out" / "net.int8.onnx").graph.initializer
    }
    assert kinds["w1"] == kinds["w2"] == onnx.TensorProto.FLOAT
    assert kinds["w0_quantized"] == onnx.TensorProto.INT8


def test_a_folder_of_samples_and_the_files_that_decide(first, built):
    (built / "some").mkdir()
    for at in range(3):
        np.save(built / "some" / f"{at}.npy", randn(at, 8, 16, 16))
    found = quantised_again(first, built, "--depfile", "net.d", samples="some")
    assert found["samples"] == 3
    rule = (built / "net.d").read_text().splitlines()[0]
    for file in ("net.onnx", "some/0.npy", "some/2.npy"):
        assert f" {file}" in rule


def test_a_frozen_build_takes_the_quantised_model_that_there_is(folder):
    build(folder, "--lock", "records.lock")
    library = (folder / "out" / "net.so").read_bytes()
    made = (folder / "out" / "net.int8.onnx").stat().st_mtime_ns
    build(folder, "--lock", "records.lock", "--frozen")
    assert (folder / "out" / "net.so").read_bytes() == library
    assert (folder / "out" / "net.int8.onnx").stat().st_mtime_ns == made
    assert build(folder, "--lock", "records.lock", "--frozen")["up_to_date"]


def test_what_is_said_on_the_way_and_in_the_report(folder):
    words = ("net.onnx", "-o", "net.so", *COMMON, *INT8, "samples.npz", "--report", "net.html")
    done = program(folder, "build", *words)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "[quantise] net.onnx by onnxruntime" in said
    assert re.search(r"y: [0-9.]+% from the float model's, at most", said)
    assert "--keep-float leaves a layer as it was" in said
    assert "[gain] beside a library of net.onnx" in said
    assert "the library of the float model: " in said
    page = (folder / "net.html").read_text()
    assert 'id="quantisation"' in page
    assert "By how much the squared error falls" in page
    again = ("report", "net.so", "--registry", "r.db", "--output", "again.md", "--time", "0.1s")
    report = answer(folder, *again)
    assert report["quantised"]["samples"] == 6
    assert "beside the float model" in (folder / "again.md").read_text()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--precision", "int8"), 2, "--precision int8 needs --calibrate: samples of the model's"),
        (("--calibrate", "samples.npz"), 2, "--calibrate is for a model that is quantised"),
        (("--keep-float", "y"), 2, "--keep-float is for a model that is quantised"),
        ((*INT8, "missing.npz"), 2, "missing.npz"),
        ((*INT8, "wrong.npz"), 2, "wrong.npz: error: the model has no input 'z'"),
        ((*INT8, "pickled.npz"), 2, "not a NumPy file of plain arrays"),
        ((*INT8, "samples.npz", "--keep-float", "secnd"), 2, "did you mean 'second'"),
        ((*INT8, "samples.npz", "-o", "net.so"), 2, "would be written over it"),
    ],
)
def test_what_cannot_be_is_refused_in_words(words, code, said, folder):
    np.savez(folder / "wrong.npz", z=randn(0, 6, 1, 8, 16, 16))
    np.savez(folder / "pickled.npz", x=np.asarray([{"a": 1}], object))
    name = "net.onnx"
    if "-o" in words:
        name = "net.int8.onnx"
        onnx.save(network(), folder / name)
    done = program(folder, "build", name, *COMMON, *words)
    assert done.returncode == code, done.stderr
    assert said in " ".join(done.stderr.split())
    assert "hint: " in done.stderr or "missing" in said or "plain arrays" in said
    assert not list(folder.glob("*.so"))


def test_a_classifier_keeps_its_labels(tmp_path):
    nodes = [node("MatMul", "x w", "scores"), node("Softmax", "scores", "score")]
    proto = model(nodes, {"x": (1, 8)}, ("score",), constants={"w": randn(0, 8, 2)})
    maps = onnx.helper.make_node(
        "ZipMap", ["score"], ["y"], domain="ai.onnx.ml", classlabels_strings=["cat", "dog"]
    )
    proto.graph.node.append(maps)
    row = onnx.helper.make_map_type_proto(8, onnx.helper.make_tensor_type_proto(1, []))
    said = onnx.helper.make_value_info("y", onnx.helper.make_sequence_type_proto(row))
    proto.graph.output[0].CopyFrom(said)
    proto.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 1))
    onnx.save(proto, tmp_path / "pets.onnx")
    np.savez(tmp_path / "samples.npz", x=randn(0, 4, 1, 8))
    asked = {"model": "pets.onnx", "samples": "samples.npz", "output": "pets.int8.onnx"}
    asked = {name: str(tmp_path / one) for name, one in asked.items()}
    quantise({**asked, "keep_float": [], "shapes": {}}, lambda *step: None)
    assert load(tmp_path / "pets.int8.onnx").labels == {"y": ("cat", "dog")}


def test_a_quantised_model_is_not_quantised_again(built):
    done = program(built, "build", "out/net.int8.onnx", *COMMON, *INT8, "samples.npz")
    assert done.returncode == 3
    assert "the model is quantised already" in " ".join(done.stderr.split())


def test_a_comparison_that_fails_is_named(tmp_path):
    """The quantised model takes a row that its table lacks: 3.0 became 3.005, and its ceiling 4."""
    constants = {"w": np.float32([[3.0, 9.7]]), "first": np.int64([0]), "table": randn(0, 4, 2)}
    nodes = [
        node("MatMul", "x w", "h"),
        node("Gather", "h first", "f", axis=1),
        node("Ceil", "f", "c"),
        node("Cast", "c", "row", to=TensorProto.INT64),
        node("Gather", "table row", "y"),
    ]
    onnx.save(model(nodes, {"x": (1, 1)}, constants=constants), tmp_path / "net.onnx")
    np.savez(tmp_path / "samples.npz", x=np.ones((4, 1, 1), np.float32))
    asked = {"model": "net.onnx", "samples": "samples.npz", "output": "net.int8.onnx"}
    asked = {name: str(tmp_path / one) for name, one in asked.items()}
    with pytest.raises(ModelError, match=r"cannot be compared with it: .* out of data bounds"):
        quantise({**asked, "keep_float": [], "shapes": {}}, lambda *step: None)
