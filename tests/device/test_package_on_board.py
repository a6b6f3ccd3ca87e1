"""A package for a board runs on a bare Debian of its architecture, in C and with NumPy."""

import shutil
import subprocess

import numpy as np
import onnx
import pytest
from helpers import arm64, graphs
from helpers.archives import unpack
from helpers.cli_inside import answer

from ansor_deploy.devices.wheels import fetch_runtime
from ansor_deploy.ship.package import package
from ansor_deploy.ship.verify.tolerance import compare

X = np.random.default_rng(0).standard_normal((4, 32), np.float32)
COMPILER = "aarch64-linux-gnu-gcc"
APP = """
#include "net.h"
#include <stdio.h>
int main(void) {
    static float x[NET_IN_X_COUNT], y[NET_OUT_Y_COUNT];
    ansor_deploy_model *model = net_load("net.so");
    FILE *given = fopen("x", "rb"), *made = fopen("own", "wb");
    if (model == NULL || fread(x, sizeof x, 1, given) != 1 || net_run(model, x, y) != 0) {
        fprintf(stderr, "%s\\n", ansor_deploy_last_error());
        return 1;
    }
    fwrite(y, sizeof y, 1, made);
    return fclose(made);
}
"""


@pytest.fixture(scope="module")
def shop(board, tmp_path_factory):
    """A folder with a library for the board, built from a lock, as in CI without the board.

    Its packages lie unpacked on the board.
    """
    if not shutil.which(COMPILER):
        pytest.skip("needs gcc-aarch64-linux-gnu and libc6-dev-arm64-cross")
    folder, wheels = tmp_path_factory.mktemp("shop"), arm64.cache() / "wheels"
    fetch_runtime("aarch64", wheels)
    nodes = [graphs.node("MatMul", "x w", "h"), graphs.node("Softmax", "h", "y")]
    proto = graphs.model(nodes, {"x": X.shape}, constants={"w": graphs.randn(0, 32, 17)})
    onnx.save(proto, folder / "net.onnx")
    options = ("--target", "rpi3", "--lock", "records.lock", "--header", "--no-verify")
    answer(folder, "build", "net.onnx", *options, "--registry", "r.db", "--trials", 0)
    answer(folder, "build", "net.onnx", *options, "--frozen")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package, "wheels_folder", lambda: wheels)
        for kind in ("c", "python"):
            made = answer(folder, "package", "net.so", "-o", f"{kind}.tar.gz", "--for", kind)
            assert made["arch"] == "aarch64"
            unpack(folder / f"{kind}.tar.gz", board.root / "opt")
    return folder


def assert_right(shop, values):
    (want,) = graphs.run(onnx.load(shop / "net.onnx"), {"x": X})
    ok, worst, _ = compare(values.reshape(want.shape), want)
    assert ok, worst


def test_the_program_runs_on_a_bare_debian(board, shop):
    place = board.root / "opt/c"
    X.tofile(place / "x")
    ran = board.ssh("cd /opt/c && sha256sum -c SHA256SUMS && ./run net.so && ./run net.so x y")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "input x: float32[4, 32], 512 bytes" in ran.stdout
    assert_right(shop, np.fromfile(place / "y", np.float32))


def test_a_program_of_ones_own_is_linked_here_and_runs_there(board, shop):
    place = board.root / "opt/c"
    (place / "app.c").write_text(APP)
    X.tofile(place / "x")
    line = [COMPILER, "-Iinclude", "app.c", "-Llib", "-lansor_deploy", "-Wl,-rpath,$ORIGIN/lib"]
    subprocess.run([*line, "-Wl,--allow-shlib-undefined", "-o", "app"], cwd=place, check=True)
    ran = board.ssh("cd /opt/c && ./app")
    assert ran.returncode == 0, ran.stderr
    assert_right(shop, np.fromfile(place / "own", np.float32))


def test_python_and_numpy_are_enough(board, shop):
    place = board.root / "opt/python"
    for name in ("numpy", "numpy.libs"):
        shutil.copytree(arm64.site_packages() / name, board.root / "opt/site" / name)
    np.save(place / "x.npy", X)
    words = "-m ansor_deploy_runtime net.so x=x.npy -o out.npz"
    ran = board.ssh(f"cd /opt/python && PYTHONPATH=/opt/site python3 {words}", timeout=300)
    assert ran.returncode == 0, ran.stderr
    with np.load(place / "out.npz") as file:
        assert_right(shop, file["y"])
