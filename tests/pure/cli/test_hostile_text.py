"""What a model, a file or a record is called never moves the cursor of who reads of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.graphs import model, node
from onnx import helper

from ansor_deploy import cli, pipeline
from ansor_deploy.cli.arrays import write_arrays
from ansor_deploy.cli.crashlog import log_text
from ansor_deploy.cli.output import in_columns
from ansor_deploy.errors import ModelError
from ansor_deploy.views.text import shortened

EVIL = "\x1b]0;pwned\x07\u202e\nansor-deploy: error: [red]x \udc80"
SHOWN = r"\x1b]0;pwned\x07\u202e"


def said(*words):
    """What a command prints on both streams; each line of it is printable."""
    result = CliRunner().invoke(cli.main, words)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert all(map(str.isprintable, result.output.split("\n")))
    return result


def networks():
    """Models that are refused by what they say of themselves, by where it stands."""
    both = [node("MatMul", "x a", "p"), node("MatMul", "x b", "q"), node("Add", "p q", "y")]
    weights = {name: np.ones((rows, 2), np.float32) for name, rows in (("a", 7), ("b", 9))}
    dims = model(both, {"x": (4,)}, constants=weights)
    dims.graph.input[0].type.tensor_type.shape.dim[0].dim_param = EVIL[:-2]
    kind = model([node("Relu", "x", "y")], {"x": (4,)})
    kind.graph.node[0].op_type = EVIL[:-2]
    place = model([node("Relu", "x", "y")], {"x": (4,)})
    place.graph.node[0].domain = place.graph.node[0].name = EVIL[:-2]
    place.opset_import.append(helper.make_opsetid(EVIL[:-2], 1))
    return {"dimension": dims, "operator": kind, "domain": place}


@pytest.mark.parametrize("where", networks())
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_models_own_words(tmp_path, monkeypatch, where, form):
    monkeypatch.chdir(tmp_path)
    Path("net.onnx").write_bytes(networks()[where].SerializeToString())
    json_words = ["--json", "--message-format", "json"] if form == "json" else []
    result = said("build", "net.onnx", *json_words)
    assert result.exit_code == 3
    assert "\nansor-deploy: error" not in result.output
    if form == "text":
        assert SHOWN in result.stderr
        assert "[red]x" in result.stderr
    else:
        assert SHOWN in json.loads(result.stdout)["error"]["message"]
        assert SHOWN in json.loads(result.stderr)["message"]


@pytest.mark.usefixtures("model")
def test_an_errors_text_hint_and_file(monkeypatch):
    def build(*_):
        raise ModelError(EVIL, hint=EVIL, file=Path(EVIL))

    monkeypatch.setattr(pipeline, "build", build)
    assert said("build", "net.onnx").stderr.count(SHOWN) == 3
    failure = json.loads(said("build", "net.onnx", "--json").stdout)["error"]
    assert failure["file"] == EVIL  # a program opens it


@pytest.mark.usefixtures("model")
def test_a_long_list_is_cut(monkeypatch):
    def build(*_):
        raise ModelError("\n".join(f"  operator {k}" for k in range(500)), hint="x" * 10**6)

    monkeypatch.setattr(pipeline, "build", build)
    error = said("build", "net.onnx").stderr
    assert "... and 480 more" in error
    assert len(error) < 4000


def test_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "targets"
    folder.mkdir()
    (tmp_path / "ansor-deploy.toml").write_text("")
    (folder / "a\x1b[2J\nb.toml").write_text("")
    assert r"a\x1b[2J\nb  " in said("targets", "list").output


def test_tables_are_as_wide_as_they_look():
    assert in_columns([("\x1b", "b"), ("a", "b")]) == [r"\x1b  b", "a     b"]
    assert len(shortened("\x1b" * 100, 24)) == 24


def test_files_of_outputs(tmp_path):
    (path,) = write_arrays({"a/\x1b[2J\n\0": np.zeros(1)}, None, tmp_path)
    assert path.name == r"a_\x1b[2J\n\x00.npy"
    assert path.is_file()


def test_logs():
    assert SHOWN in log_text(ValueError(EVIL), ["build", EVIL])
    assert len(log_text(ValueError("x" * 10**8), [])) <= 1 << 20


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_letters_that_the_terminal_lacks(tmp_path, encoding):
    """Names of files are bytes: one that no letters stand for is refused, and printed as well."""
    name = "尺寸-\udcff.onnx"
    (tmp_path / name).touch()
    result = subprocess.run(
        [sys.executable, "-m", "ansor_deploy", "plan", name, "--json"],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["kind"] == "usage"
    assert b"Traceback" not in result.stderr
    assert rb"\udcff.onnx' is no UTF-8: rename it" in result.stderr
