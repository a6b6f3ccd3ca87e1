"""A package runs where there is nothing of this tool: in C, and with Python and NumPy."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers import bare_root, graphs
from helpers.archives import unpack
from helpers.bare_root import BareRoot
from helpers.built import HOST
from helpers.cli_inside import answer, program
from helpers.cli_process import refused

from ansor_deploy.errors import DeviceError
from ansor_deploy.ship.package import package
from ansor_deploy.ship.package.wheel import module_name
from ansor_deploy.ship.verify.tolerance import compare

RNG = np.random.default_rng(0)
X, IDS = RNG.standard_normal((2, 16), np.float32), np.array([3, 0], np.int64)


def lookup():
    """A table's rows, by an input that holds indices, beside another input: y = rows[ids] + x."""
    nodes = [graphs.node("Gather", "rows ids", "r"), graphs.node("Add", "r x", "y")]
    rows = ("float32", (2, 16))
    inputs = {"x": rows, "ids": ("int64", (2,))}
    return graphs.typed(nodes, inputs, {"y": rows}, {"rows": graphs.randn(0, 9, 16)})


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a library, and a package of it for each language."""
    folder = tmp_path_factory.mktemp("shop")
    onnx.save(lookup(), folder / "net.onnx")
    answer(folder, "build", "net.onnx", "--trials", 0, "--registry", "r.db", "--header")
    for kind in ("c", "python"):
        answer(folder, "package", "net.so", "-o", f"{kind}.tar.gz", "--for", kind)
    return folder


@pytest.fixture(scope="module")
def want(shop):
    (expected,) = graphs.run(onnx.load(shop / "net.onnx"), {"x": X, "ids": IDS})
    return expected


@pytest.fixture
def root(tmp_path):
    if reason := bare_root.missing():
        pytest.skip(reason)
    return BareRoot(tmp_path / "root")


@pytest.fixture(scope="module")
def older():
    """The command that runs programs on a processor which lacks what code for this one needs."""
    qemu = shutil.which("qemu-x86_64")
    if qemu is None or HOST.cpu not in ("x86-64-v3", "x86-64-v4"):
        pytest.skip("needs qemu-x86_64 (Debian: apt-get install qemu-user), and AVX2 or more here")
    return [qemu, "-cpu", "Haswell" if HOST.cpu == "x86-64-v4" else "Nehalem"]


def unpacked(archive, folder):
    """The folder that an archive has in it."""
    unpack(archive, folder)
    return folder / archive.name.partition(".")[0]


def test_c_runs_in_a_root_with_a_c_library_and_nothing_else(shop, want, root):
    place = unpacked(shop / "c.tar.gz", root.folder)
    root.needed_by([place / "run", *place.rglob("*.so")])
    X.tofile(place / "x")
    IDS.tofile(place / "ids")
    described = root.run("./run", "net.so", folder="/c")
    assert described.returncode == 0, described.stderr
    assert described.stdout.splitlines() == [
        "input x: float32[2, 16], 128 bytes",
        "input ids: int64[2], 16 bytes",
        "output y: float32[2, 16], 128 bytes",
    ]
    ran = root.run("./run", "net.so", "x", "ids", "y", folder="/c")
    assert ran.returncode == 0, ran.stderr
    ok, worst, _ = compare(np.fromfile(place / "y", np.float32).reshape(2, 16), want)
    assert ok, worst


def test_python_runs_in_a_root_with_numpy_and_nothing_else(shop, want, root):
    place = unpacked(shop / "python.tar.gz", root.folder)
    python = root.python()
    root.needed_by(place.rglob("*.so"))
    np.save(place / "x.npy", X)
    np.save(place / "ids.npy", IDS)
    words = ("-m", "ansor_deploy_runtime", "net.so")
    described = root.run(python, *words, folder="/python")
    assert described.stdout == "takes x: float32[2, 16], ids: int64[2]\ngives y: float32[2, 16]\n"
    given = ("x=x.npy", "ids=ids.npy", "-o", "out.npz")
    ran = root.run(python, *words, *given, folder="/python")
    assert ran.returncode == 0, ran.stderr
    with np.load(place / "out.npz") as file:
        ok, worst, _ = compare(file["y"], want)
    assert ok, worst


FACES = """
import numpy as np
import ansor_deploy_runtime as r
model = r.load("net.so", threads=1)
assert [info.name for info in model.inputs] == ["x", "ids"], model.inputs
x, ids = np.ones((2, 16), np.float32), np.array([3, 0])
plain = model(x=x, ids=ids)["y"]
backwards = np.ones((16, 2), np.float32).T
assert (model(x=backwards, ids=ids)["y"] == plain).all()
model.run_into({"y": x}, x=x, ids=ids)  # an output over an input
assert (x == plain).all()
assert len(model.times({"x": x, "ids": ids}, 3)) == 3
said = []
for given in ({"x": x}, {"x": x, "ids": np.array([9, 0])}):
    try:
        model(**given)
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}")
print(*said, sep="\\n")
"""


def test_its_faces_are_those_of_the_runtime(shop, tmp_path):
    place = unpacked(shop / "python.tar.gz", tmp_path)
    line = [sys.executable, "-c", FACES]
    ran = subprocess.run(line, cwd=place, env={}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    missing, index = ran.stdout.splitlines()
    assert missing == "UsageError: inputs of net.so do not fit: ids: missing"
    assert index.startswith("UsageError: net.so: Gather: ")
    assert "is not in -9 .. 8" in index


def test_without_numpy_it_says_what_to_install(shop, tmp_path):
    place = unpacked(shop / "python.tar.gz", tmp_path)
    line = [sys.executable, "-S", "-m", "ansor_deploy_runtime", "net.so"]
    ran = subprocess.run(line, cwd=place, env={}, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: No module named 'numpy'\n  hint: pip install numpy, or")


def test_its_loader_refuses_in_words(shop, tmp_path):
    place = unpacked(shop / "python.tar.gz", tmp_path)

    def ran(*words):
        line = [sys.executable, "-m", "ansor_deploy_runtime", *words]
        done = subprocess.run(line, cwd=place, env={}, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stderr

    assert ran("net.so", "x=none.npy")[0] == 2
    code, said = ran("other.so")
    assert (code, "there is no such library" in said) == (1, True)
    manifest = json.loads((place / "net.json").read_text())
    del manifest["target"]["cores"]
    (place / "net.json").write_text(json.dumps(manifest))
    code, said = ran("net.so")
    assert (code, "not a manifest" in said) == (1, True)
    foreign = manifest["target"] | {"triple": "riscv64-linux-gnu", "cores": 1}
    (place / "net.json").write_text(json.dumps(manifest | {"target": foreign}))
    assert ran("net.so")[0] == 4


def test_a_library_that_nothing_loads_is_not_packed(shop, tmp_path):
    manifest = json.loads((shop / "net.json").read_text())
    manifest["target"]["triple"] = "armv7-linux-gnueabihf"
    shutil.copyfile(shop / "net.so", tmp_path / "net.so")
    (tmp_path / "net.json").write_text(json.dumps(manifest))
    refused(program(tmp_path, "package", "net.so", "-o", "p.tar.gz"), 4, "not published for armv7")
    assert not (tmp_path / "p.tar.gz").exists()


def test_the_sums_are_those_of_all_files(shop, tmp_path):
    place = unpacked(shop / "c.tar.gz", tmp_path)
    subprocess.run([shutil.which("sha256sum"), "--check", "SHA256SUMS"], cwd=place, check=True)
    listed = {line.split()[1] for line in (place / "SHA256SUMS").read_text().splitlines()}
    files = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert files == listed | {"SHA256SUMS"}
    assert {"run", "net.so", "net.json", "net.intoto.json", "README"} < files
    assert {"include/ansor_deploy.h", "include/net.h", "lib/libansor_deploy.so"} < files


def test_an_archive_has_plain_files_below_one_folder(shop, tmp_path):
    """Whoever unpacks it, and wherever: also of links, it has what they lead to."""
    for name in ("net.so", "net.intoto.json"):
        (tmp_path / name).symlink_to(shop / name)
    (tmp_path / "net.json").hardlink_to(shop / "net.json")
    answer(tmp_path, "package", "net.so", "-o", "p.tar.gz", "--for", "python")
    with tarfile.open(tmp_path / "p.tar.gz") as archive:
        entries = archive.getmembers()
    assert {entry.type for entry in entries} == {tarfile.REGTYPE}
    assert {entry.name.partition("/")[0] for entry in entries} == {"p"}
    assert not any(".." in entry.name.split("/") for entry in entries)
    assert {(entry.uid, entry.gid, entry.mode) for entry in entries} <= {
        (0, 0, 0o644), (0, 0, 0o755),
    }  # fmt: skip
    assert "p/net.so" in {entry.name for entry in entries}


def test_no_file_of_a_package_takes_the_place_of_a_library(shop, tmp_path):
    shutil.copy(shop / "net.so", tmp_path / "README")
    shutil.copy(shop / "net.json", tmp_path / "README.json")
    words = ("package", "README", "-o", "p.tar.gz", "--for", "python")
    refused(program(tmp_path, *words), 2, "of its own with this name", "mv README README.so")
    assert (tmp_path / "README").read_bytes() == (shop / "net.so").read_bytes()


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_the_same_library_gives_the_same_bytes(suffix, shop, tmp_path):
    if suffix == "zst":
        pytest.importorskip("zstandard")
        answer(shop, "package", "net.so", "-o", "c.tar.zst")
    made = answer(shop, "package", "net.so", "-o", tmp_path / "again" / f"c.tar.{suffix}")
    for folder in (shop, tmp_path / "again"):
        data = (folder / f"c.tar.{suffix}").read_bytes()
        assert made["sha256"] == hashlib.sha256(data).hexdigest()
    assert [path.name for path in (tmp_path / "again").iterdir()] == [f"c.tar.{suffix}"]


def test_a_program_of_ones_own_links_with_the_package(shop, tmp_path):
    place = unpacked(shop / "c.tar.gz", tmp_path)
    (place / "app.c").write_text(
        '#include "net.h"\nint main(void) { return net_load("net.so") != NULL ? 0 : 1; }\n'
    )
    line = "cc -Iinclude app.c -Llib -lansor_deploy -Wl,-rpath,$ORIGIN/lib -o app"
    assert line in (place / "README").read_text().replace("'", "")
    subprocess.run(line.split(), cwd=place, check=True)
    subprocess.run(["./app"], cwd=place, env={}, check=True)


def test_what_is_no_whole_library_is_refused(shop, tmp_path):
    for name in ("net.so", "net.json"):
        shutil.copy(shop / name, tmp_path)
    refused(program(tmp_path, "package", "net.so", "-o", "p.zip"), 2, "does not end in .tar.gz")
    assert program(tmp_path, "package", "none.so").returncode == 2
    data = bytearray((tmp_path / "net.so").read_bytes())
    data[-1] ^= 1  # a weight
    (tmp_path / "net.so").write_bytes(data)
    refused(program(tmp_path, "package", "net.so"), 1, "not the library of net.json")
    (tmp_path / "net.json").unlink()
    refused(program(tmp_path, "package", "net.so"), 1, "manifest of net.so is missing")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.so"]


def test_the_wheel_is_small_and_needs_numpy_alone(shop, tmp_path, want):
    source = Path(__file__).parents[3] / "runtime"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", tmp_path, source], check=True)
    (wheel,) = tmp_path.glob("ansor_deploy_runtime-*-py3-none-manylinux_2_*.whl")
    assert wheel.stat().st_size < 10e6
    target = tmp_path / "site"
    install = [*pip, "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel]
    subprocess.run(install, check=True)
    code = (
        "import sys, numpy as np, ansor_deploy_runtime as r; "
        f"x, ids = np.array({X.tolist()}, np.float32), np.array([3, 0]); "
        f"np.save('y.npy', r.load({str(shop / 'net.so')!r})(x=x, ids=ids)['y']); "
        "print(*{'tvm', 'tvm_ffi', 'msgspec', 'ml_dtypes'} & set(sys.modules))"
    )
    line = [sys.executable, "-c", code]
    environment = {"PYTHONPATH": str(target)}
    ran = subprocess.run(
        line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, ""), ran.stderr
    assert compare(np.load(tmp_path / "y.npy"), want)[0]


def test_pip_installs_a_library_with_what_runs_it(shop, tmp_path, want):
    said = answer(shop, "package", "net.so", "-o", tmp_path / "dist", "--for", "pip")
    names = {Path(said["file"]).name, Path(said["needs"]).name}
    assert names == {path.name for path in (tmp_path / "dist").iterdir()}
    assert {"net/net.so", "net/net.json", "net/__init__.py"} <= {f["file"] for f in said["files"]}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    words = ["--no-deps", "--no-index", "--target", tmp_path / "site", said["file"], said["needs"]]
    subprocess.run([*pip, *words], check=True)
    code = (
        "import numpy as np, net; "
        f"x, ids = np.array({X.tolist()}, np.float32), np.array([3, 0]); "
        "np.save('y.npy', net.load(threads=1).run(['y'], {'x': x, 'ids': ids})[0])"
    )
    environment = {"PYTHONPATH": str(tmp_path / "site")}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    assert compare(np.load(tmp_path / "y.npy"), want)[0]
    again = answer(shop, "package", "net.so", "-o", tmp_path / "again", "--for", "pip")
    assert again["sha256"] == said["sha256"]
    refused(program(shop, "package", "net.so", "-o", "net.json", "--for", "pip"), 2, "a folder")


@pytest.mark.parametrize(
    ("file", "name"),
    [("resnet-18.so", "resnet_18"), ("3d.so", "model_3d"), ("class.so", "model_class")],
)
def test_a_library_is_imported_by_its_name(file, name):
    assert module_name(Path(file)) == name


def test_a_program_that_gives_something_else_is_not_packed(shop, monkeypatch):
    made = package.c_runtime

    def zeros(arch, folder, wheels):
        made(arch, folder, wheels)
        (folder / "run").write_text('#!/bin/sh\nexec /usr/bin/head -c 128 /dev/zero > "$6"\n')

    monkeypatch.setattr(package, "c_runtime", zeros)
    said = program(shop, "package", "net.so", "-o", "wrong.tar.gz")
    refused(said, 6, "output y of the package's program is not the library's")
    assert not (shop / "wrong.tar.gz").exists()


@pytest.mark.parametrize("kind", ["c", "python"])
def test_the_wrong_processor_is_named_before_any_code_runs(shop, older, tmp_path, kind):
    place = unpacked(shop / f"{kind}.tar.gz", tmp_path)
    started = {"c": ["./run"], "python": [sys.executable, "-m", "ansor_deploy_runtime"]}[kind]
    ran = subprocess.run(
        [*older, *started, "net.so"], cwd=place, capture_output=True, text=True, check=False
    )
    lacking = "avx512vl" if HOST.cpu == "x86-64-v4" else "avx2"
    assert ran.returncode in (1, DeviceError.exit_code), ran.stderr  # and not by SIGILL
    assert re.search(rf"is built for a processor with .*{lacking}.*, which this one", ran.stderr)
    assert "--target A,B" in ran.stderr
