"""Code that is built here for a board that is not at hand runs there, and is right."""

import json
import shutil
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from helpers import arm64
from helpers.cli_inside import answer
from helpers.graphs import LIGHT_FOLDER, before_softmax, randomize_weights
from tvm import te

from ansor_deploy.codegen.kernels import candidate as codegen
from ansor_deploy.ship.verify.oracle import Oracle
from ansor_deploy.ship.verify.tolerance import compare
from ansor_deploy.space.canonical_text import canonical_text
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

SITE = "/opt/site"
TARGETS = ("rpi3", "cortex-a53")


@pytest.fixture(scope="module")
def able_board(board):
    """The board, with what runs a library installed on it."""
    shutil.copytree(arm64.site_packages(), board.root / SITE[1:])
    shutil.copy(Path(__file__).parents[1] / "helpers" / "on_board.py", board.root / SITE[1:])
    return board


def call(board, library, function, *arrays):
    """What on_board.py leaves, or how the process ended."""
    np.savez(board.root / "tmp/in.npz", *arrays)
    shutil.copy(library, board.root / "tmp/library.so")
    words = f"{SITE}/on_board.py /tmp/library.so {function} /tmp/in.npz /tmp/out.npz"
    began = time.monotonic()
    done = board.ssh(f"PYTHONPATH={SITE} python3 {words}", timeout=600)
    if done.returncode:
        return done
    print(f"{time.monotonic() - began:.1f} s in all, {float(done.stdout):.3f} s a run")
    with np.load(board.root / "tmp/out.npz") as file:
        return [file[name] for name in file.files]


def candidate(func, path, name="rpi3"):
    """A kernel, built as a candidate is."""
    target = load_target(name, [shipped("targets")])
    payload = {"text": canonical_text(func), "how": "default", "path": str(path)}
    codegen.build({**payload, "target": target.to_json()})
    return path


def matmul():
    a, b = te.placeholder((32, 64), name="a"), te.placeholder((64, 48), name="b")
    k = te.reduce_axis((0, 64), name="k")
    product = te.compute((32, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return te.create_prim_func([a, b, product])


def transcendental():
    """What libm gives, one function a row; each has changed its version since glibc 2.17."""
    x = te.placeholder((64,), name="x")
    y = te.compute((64,), lambda i: te.exp(x[i]) + te.log(x[i]) + te.power(x[i], x[i]), name="y")
    return te.create_prim_func([x, y])


@pytest.mark.parametrize("name", TARGETS)
def test_a_kernel_runs_on_the_board(name, able_board, tmp_path):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((32, 64), (64, 48)))
    library = candidate(matmul(), tmp_path / "k.so", name)
    *_, product = call(able_board, library, "compute", a, b, np.zeros((32, 48), np.float32))
    np.testing.assert_allclose(product, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("linker", ["aarch64-linux-gnu-ld", "ld.lld", "ziglang"])
def test_every_linker_makes_a_library_that_the_board_loads(
    linker, able_board, tmp_path, monkeypatch
):
    only = tmp_path / "bin"
    only.mkdir()
    if linker == "ziglang":
        if not find_spec("ziglang"):
            pytest.skip("needs the package ziglang")
    elif found := shutil.which(linker):
        (only / linker).symlink_to(found)
    else:
        pytest.skip(f"needs {linker}")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(only))
        library = candidate(transcendental(), tmp_path / "k.so")
    assert b"GLIBC" not in library.read_bytes()
    assert b"libm." not in library.read_bytes()
    x = np.linspace(0.1, 4, 64, dtype=np.float32)
    _, y = call(able_board, library, "compute", x, np.zeros_like(x))
    np.testing.assert_allclose(y, np.exp(x) + np.log(x) + x**x, rtol=1e-5)


def test_a_symbol_that_the_board_lacks_is_an_error_of_loading(able_board, tmp_path):
    x = te.placeholder((64,), name="x")
    unknown = tvm.tirx.call_extern
    y = te.compute((64,), lambda i: unknown("float32", "not_on_the_board", x[i]), name="y")
    library = candidate(te.create_prim_func([x, y]), tmp_path / "k.so")
    zeros = np.zeros(64, np.float32)
    ended = call(able_board, library, "compute", zeros, zeros)
    assert ended.returncode == 1  # Python's, not the loader's 127
    assert "undefined symbol: not_on_the_board" in ended.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with SqueezeNet and its library for the board."""
    folder = tmp_path_factory.mktemp("built")
    trained = randomize_weights(onnx.load(LIGHT_FOLDER / "light_squeezenet.onnx"), seed=1)
    onnx.save(onnx.shape_inference.infer_shapes(before_softmax(trained)), folder / "net.onnx")
    answer(folder, "build", "net.onnx", "--target", "rpi3", "--registry", "r.db")
    return folder


def test_a_whole_network_runs_on_the_board(able_board, built):
    manifest = json.loads((built / "net.json").read_text())
    (info,) = manifest["inputs"]
    image = np.random.default_rng(7).standard_normal(info["shape"], np.float32)
    oracle = Oracle(onnx.load(built / "net.onnx"))
    (expected,) = oracle.outputs({info["name"]: image}).values()
    (output,) = call(able_board, built / "net.so", "main", image)
    assert np.ptp(expected) > 0
    ok, worst, _ = compare(output, expected)
    assert ok, f"off by {worst}"


def test_a_board_that_starts_anew_is_as_delivered(able_board):
    able_board.ssh("echo written > note; sleep 300 > /dev/null 2>&1 &")
    assert able_board.ssh("cat note").stdout == "written\n"
    assert len(able_board.processes()) == 1
    able_board.stop()
    able_board.sshd.start()
    assert able_board.ssh("cat note").returncode == 1
    assert able_board.ssh("echo $QEMU_CPU").stdout == "cortex-a53\n"
    assert able_board.processes() == []
