"""`ansor-deploy run`: arrays in, arrays out, and errors that say what was expected."""

import json
import types
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner

from ansor_deploy.cli import main
from ansor_deploy.ship import library


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str


HUGE = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,)}"


class Library:
    """Adds its two inputs."""

    inputs = (Tensor("a", (2, 3), "float32"), Tensor("b", (2, 3), "float32"))
    interfaces = (types.SimpleNamespace(inputs=inputs),)

    def __call__(self, **inputs):
        return {"sum/0": inputs["a"] + inputs["b"]}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the command in a directory with a library and some arrays."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(library, "opened_or_emulated", lambda *_: nullcontext(Library()))
    ones = np.ones((2, 3), "float32")
    np.save("ones.npy", ones)
    np.save("wide.npy", ones.astype("float64"))
    np.save("objects.npy", np.array([object()]), allow_pickle=True)
    np.savez("both.npz", a=ones, b=2 * ones)
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "text.npz").write_text("no arrays")
    for name, header in {"cut": "[" * 99, "huge": HUGE}.items():
        content = header.encode().ljust(118)
        (tmp_path / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\0v\0" + content)
    (tmp_path / "lib.so").touch()
    return lambda *words: CliRunner().invoke(main, ["run", "lib.so", "--no-device", *words])


def test_summary(run):
    result = run("--input", "a=ones.npy", "--input", "b=ones.npy")
    assert result.stdout == "sum/0 2x3 float32: min 2, max 2, mean 2\n"


def test_json(run):
    answer = json.loads(run("--input", "both.npz", "--json").stdout)
    assert answer["outputs"][0] == {
        "name": "sum/0", "shape": [2, 3], "dtype": "float32", "min": 3.0, "max": 3.0, "mean": 3.0
    }  # fmt: skip


def test_output_file(run, tmp_path):
    result = run("--input", "both.npz", "-o", "new/out.npz")
    assert result.stdout == "wrote new/out.npz\n"
    assert np.load("new/out.npz")["sum/0"].tolist() == [[3.0] * 3] * 2
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out.npz"]


def test_output_directory(run):
    assert run("--input", "both.npz", "--output-dir", "outs").exit_code == 0
    assert np.load("outs/sum_0.npy").shape == (2, 3)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "missing input: a 2x3 float32; b 2x3 float32"),
        (["--input", "a=ones.npy"], "missing input: b 2x3 float32"),
        (
            ["--input", "both.npz", "--input", "a=wide.npy"],
            "a 2x3 float32 was given as 2x3 float64",
        ),
        (["--input", "both.npz", "--input", "c=ones.npy"], "no input 'c'"),
        (["--input", "c=ones.npy"], "no input 'c'\n  hint: it takes: a 2x3 float32; b 2x3 float32"),
        (["--input", "a=gone.npy"], "gone.npy: error: no such file"),
        (["--input", "a=text.npy"], "text.npy: error: not a NumPy file"),
        (["--input", "a=cut.npy"], "cut.npy: error: not a NumPy file"),
        (["--input", "a=huge.npy"], "huge.npy: error: not a NumPy file"),
        (["--input", "text.npz"], "text.npz: error: not a NumPy file"),
        (["--input", "a=objects.npy"], "objects.npy: error: not a NumPy file of plain arrays"),
        (["--input", "ones.npy"], "write it like data=image.npy, or inputs.npz"),
        (["--input", "both.npz", "-o", "o.npz", "--output-dir", "o"], "exclude each other"),
    ],
)
def test_errors_say_what_is_expected(run, words, says):
    result = run(*words)
    assert result.exit_code == 2
    assert says in result.stderr
