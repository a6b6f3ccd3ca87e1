"""What a Python program calls: the same as the command line does, with the same results."""

import shutil

import numpy as np
import onnx
import pytest
from helpers.cli_inside import answer
from helpers.graphs import model, node, randn
from helpers.lab import RULE

from ansor_deploy import api
from ansor_deploy.errors import AnsorError, MissingRecordError, ModelError, UsageError
from ansor_deploy.ship import compile as compiling


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("api")
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    proto = model(nodes, {"x": ("n", 32)}, constants={"w": randn(0, 32, 16)})
    onnx.save(proto, made / "net.onnx")
    return made


class Heard(api.Report):
    def __init__(self):
        self.stages = []

    def stage(self, name, detail=""):
        self.stages.append(name)


def test_a_model_is_tuned_built_and_run(folder):
    common = {"registry": folder / "r.db", "input_shapes": {"x": (4, 32)}, "effort": "quick"}
    planned = api.plan(folder / "net.onnx", **common)
    assert [row.status for row in planned.rows] == ["miss"]
    tuned = api.tune([str(folder / "net.onnx")], trials=2, **common)
    assert tuned.trials == 2
    heard = Heard()
    built = api.build(folder / "net.onnx", folder / "net.so", report=heard, trials=0, **common)
    assert (built.verified, built.tuned.trials, built.up_to_date) == (True, 0, False)
    assert {"compile", "verify"} <= set(heard.stages)
    x = randn(1, 4, 32)
    loaded = api.load(built.artifact)
    w = onnx.numpy_helper.to_array(onnx.load(folder / "net.onnx").graph.initializer[0])
    np.testing.assert_allclose(loaded(x=x)["y"], np.maximum(x @ w, 0), rtol=1e-5, atol=1e-5)
    with api.Registry.open(folder / "r.db", write=False) as registry:
        (best,) = registry.query()
    assert (best["trials"], best["op"]) == (2, "matmul")
    # A build by the command line sees the same.
    words = ("--input-shape", "x=4,32", "--effort", "quick", "--registry", "r.db", "--trials", 0)
    assert answer(folder, "build", "net.onnx", "-o", "net.so", *words)["up_to_date"]


class Meddling(Heard):
    """Does something to the files of a build, once that has read its model."""

    def __init__(self, meddle):
        super().__init__()
        self._meddle = meddle

    def stage(self, name, detail=""):
        super().stage(name, detail)
        if name == "compile":
            self._meddle()


def test_what_is_taken_away_or_changed_meanwhile_is_said(folder, tmp_path):
    shutil.copy(folder / "net.onnx", tmp_path)
    path, library = tmp_path / "net.onnx", tmp_path / "out" / "net.so"
    rule = tmp_path / "serial.py"
    content = path.read_bytes()
    for meddle, says in (
        (lambda: path.write_bytes(content + b"\x12\x00"), "it was changed while it was built"),
        (path.unlink, "no such file"),
        (rule.unlink, "the rule cannot be read: No such file"),
        (lambda: shutil.rmtree(library.parent), "cannot write to .*out: No such file"),
    ):
        path.write_bytes(content)
        shutil.copy(RULE, rule)
        common = {"registry": tmp_path / "r.db", "input_shapes": {"x": (4, 32)}, "trials": 0}
        common["rules"] = [rule]
        with pytest.raises(AnsorError, match=says) as caught:
            api.build(path, library, report=Meddling(meddle), **common)
        assert caught.value.hint
        assert not library.exists()


def test_a_rule_that_is_changed_once_it_was_asked_is_said(folder, tmp_path, monkeypatch):
    rule = shutil.copy(RULE, tmp_path / "serial.py")
    export = compiling.export_codes

    def meddling(*words):
        rule.write_text(f"{rule.read_text()}\n")
        return export(*words)

    monkeypatch.setattr(compiling, "export_codes", meddling)
    common = {"registry": tmp_path / "r.db", "input_shapes": {"x": (4, 32)}, "trials": 0}
    with pytest.raises(UsageError, match="the rule was changed while the model was built"):
        api.build(folder / "net.onnx", tmp_path / "net.so", rules=[rule], **common)
    assert not (tmp_path / "net.so").exists()


def test_a_build_of_ci_tunes_and_writes_nothing(folder):
    words = folder / "net.onnx", folder / "ci.so"
    common = {"registry": folder / "ci.db", "input_shapes": {"x": (2, 32)}}
    with pytest.raises(MissingRecordError, match="1 of 1"):
        api.build(*words, require_hits=True, **common)
    before = (folder / "ci.db").read_bytes()
    built = api.build(*words, read_only=True, **common)
    assert (built.verified, built.tuned.trials) == (True, 0)
    assert (folder / "ci.db").read_bytes() == before
    with pytest.raises(UsageError, match="--require-hits tunes nothing"):
        api.build(*words, require_hits=True, trials=4, **common)


def test_mistakes_are_errors_with_a_remedy(folder):
    with pytest.raises(UsageError, match="is not an input's shape") as caught:
        api.plan(folder / "net.onnx", registry=folder / "r.db", input_shapes={"x": "a,b"})
    assert caught.value.hint
    with pytest.raises(UsageError, match="there is no effort 'quik'") as caught:
        api.plan(folder / "net.onnx", effort="quik")
    assert "Did you mean 'quick'?" in caught.value.hint
    with pytest.raises(UsageError, match="there is no option 'trial'") as caught:
        api.plan(folder / "net.onnx", trial=0)
    assert "Did you mean 'trials'?" in caught.value.hint
    with pytest.raises(UsageError, match="needs --calibrate"):
        api.plan(folder / "net.onnx", precision="int8")
    with pytest.raises(ModelError):
        api.build(folder / "none.onnx", registry=folder / "r.db")
