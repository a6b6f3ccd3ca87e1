"""Building for a machine that is not at hand, and what linkers do when they refuse."""

import json
import os
import shutil
from dataclasses import replace
from importlib.util import find_spec

import onnx
import pytest
import tvm
from helpers.cli_inside import answer, program
from helpers.cli_process import everything, refused
from helpers.graphs import model, node, randn
from onnx import helper
from tvm import te

from ansor_deploy.codegen import linker
from ansor_deploy.codegen.kernels import candidate as codegen
from ansor_deploy.errors import AnsorError, LinkError
from ansor_deploy.measure.builder import Builder, BuildJob, Failure
from ansor_deploy.model.operators.operator import Operator
from ansor_deploy.model.operators.table import OPERATORS
from ansor_deploy.space.canonical_text import canonical_text
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

HOST = load_target("host", [shipped("targets")])
BOARD = load_target("rpi3", [shipped("targets")])
FOREIGN = BOARD if linker.is_foreign(BOARD) else replace(HOST, triple="x86_64-linux-gnu")
NOT_RUN = {"ran_on": None, "latency_ms": None, "untuned_ms": None, "trials": 0}
STOOD_IN = {"verified": True, "where": "this machine, untuned", "reason": None, "allowed": {}}
VERIFIED = ("verify", "verification")
UNVERIFIED = {"verified": False, "where": None, "reason": "asked for by --no-verify", "allowed": {}}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a small model, and targets that this machine cannot run."""
    folder = tmp_path_factory.mktemp("shop")
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    onnx.save(model(nodes, {"x": (4, 32)}, constants={"w": randn(0, 32, 16)}), folder / "net.onnx")
    (folder / "wide.toml").write_text('extends = "host"\ncores = 4096\n')
    return folder


@pytest.fixture
def board_linker():
    """Skips where nothing links for another architecture."""
    try:
        linker.check(FOREIGN)
    except AnsorError as error:
        pytest.skip(f"{error.message}: {error.hint}")


def words(target, name):
    return ("net.onnx", "--target", target, "--registry", f"{name}.db")


@pytest.mark.usefixtures("board_linker")
@pytest.mark.parametrize("target", [FOREIGN.name, "wide.toml"])
def test_a_build_without_a_device_verifies_the_same_import_here(shop, target):
    line = ("build", *words(target, target), "-o", f"out-{target}/net.so")
    result = program(shop, *line, "--json")
    assert result.returncode == 0, result.stderr
    printed = json.loads(result.stdout)
    assert {name: printed[name] for name in NOT_RUN} == NOT_RUN
    # This processor runs code for more cores than it has, on those that it has.
    where = STOOD_IN if target == FOREIGN.name else {**STOOD_IN, "where": "native"}
    assert (printed["verification"], printed["verify"]["ok"]) == (where, True)
    manifest = json.loads((shop / f"out-{target}/net.json").read_text())
    assert (manifest["ran_on"], manifest["speed"]) == (None, None)
    assert {name: printed[name] for name in VERIFIED} == {name: manifest[name] for name in VERIFIED}
    said = " ".join(result.stderr.split())
    more = f"is of 4096 cores, and this machine has {HOST.cores} (--target wide:{HOST.cores} is"
    assert ("cannot run on this machine" if target == FOREIGN.name else more) in said
    assert "no device is given: nothing is tuned or timed" in said
    assert "outputs agree with onnxruntime" in said
    before = everything(shop / f"out-{target}")
    assert answer(shop, *line)["up_to_date"]
    assert everything(shop / f"out-{target}") == before


def test_tuning_for_another_machine_needs_a_device(shop):
    line = ("tune", *words(FOREIGN.name, "tuned"))
    says = ("cannot run on this machine", "hint: add one: ansor-deploy devices add USER@HOST")
    refused(program(shop, *line), 4, *says)
    refused(program(shop, *line, "--no-device"), 4, "hint: leave out --no-device; `build` and")


@pytest.fixture
def wrong_relu(monkeypatch):
    """An import that takes Relu for Identity."""

    def identity(graph, node):
        return [helper.make_node("Identity", [node.input[0]], list(node.output))]

    monkeypatch.setitem(OPERATORS, ("", "Relu"), Operator("Relu", rewrite=identity))


@pytest.mark.usefixtures("board_linker", "wrong_relu")
@pytest.mark.parametrize("frozen", [False, True])
def test_a_wrong_import_is_found_without_the_target(shop, frozen):
    lock = ("--lock", f"{FOREIGN.name}.lock")
    if frozen:
        line = (*words(FOREIGN.name, "lock"), *lock)
        answer(shop, "build", *line, "--no-verify", "-o", "unverified.so")
    how = (*lock, "--frozen") if frozen else ()
    line = ("build", *words(FOREIGN.name, "wrong"), "-o", f"wrong-{frozen}.so", *how)
    refused(program(shop, *line), 6, "differs from onnxruntime", "no library was written")
    assert not list(shop.glob(f"wrong-{frozen}*"))


@pytest.mark.usefixtures("board_linker")
@pytest.mark.parametrize("target", [FOREIGN.name, "host"])
def test_a_build_that_verifies_nothing_says_so_and_is_no_verified_one(shop, target):
    line = ("build", *words(target, "not"), "-o", f"not-{target}/net.so", "--trials", "0")
    result = program(shop, *line, "--no-verify")
    assert result.returncode == 0
    assert "net.so is not verified: asked for by --no-verify" in " ".join(result.stderr.split())
    manifest = json.loads((shop / f"not-{target}/net.json").read_text())
    assert (manifest["verification"], manifest["verify"]) == (UNVERIFIED, None)
    again = program(shop, *line, "--no-verify")
    assert "is up to date" in again.stdout
    assert "is not verified" in again.stderr
    made = answer(shop, *line)
    assert (made["up_to_date"], made["verify"]["ok"]) == (False, True)
    assert answer(shop, *line, "--no-verify")["up_to_date"]


@pytest.mark.usefixtures("board_linker")
@pytest.mark.parametrize("command", ["run", "bench", "verify"])
def test_a_library_of_another_architecture_is_not_loaded(shop, command):
    answer(shop, "build", *words(FOREIGN.name, "foreign"), "-o", "foreign.so")
    models = ["net.onnx"] if command == "verify" else []
    result = program(shop, command, "foreign.so", *models)
    refused(result, 4, f"foreign.so is built for {FOREIGN.triple}, and this machine is")


@pytest.mark.parametrize("target", [FOREIGN.name, "wide.toml"])
def test_tuning_needs_a_device(shop, target):
    why = "cannot run on" if target == FOREIGN.name else "is of 4096 cores, and this machine has"
    add = "ansor-deploy devices add USER@HOST"
    refused(program(shop, "tune", *words(target, "tuned")), 4, why, add)
    assert not (shop / "tuned.db").exists()


@pytest.mark.skipif(HOST.cores < 2, reason="needs two cores")
def test_what_was_never_run_is_run_where_that_can_be(shop):
    (shop / "all.toml").write_text(f'extends = "host"\ncores = {HOST.cores}\n')
    line = ("build", *words("all.toml", "moved"), "-o", "moved.so", "--trials", "0")
    assert answer(shop, *line, preexec_fn=on_one_core)["ran_on"] is None
    made = answer(shop, *line)
    assert (made["ran_on"], made["up_to_date"], made["verify"]["ok"]) == ("host", False, True)
    assert answer(shop, *line)["up_to_date"]
    assert answer(shop, *line, preexec_fn=on_one_core)["ran_on"] == "host"


def on_one_core():
    """In a child about to start."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


# Linkers


def kernel():
    x = te.placeholder((64,), name="x")
    return te.create_prim_func([x, te.compute((64,), lambda i: te.exp(x[i]), name="y")])


def build(target, path):
    text = canonical_text(kernel())
    payload = {"text": text, "how": "default", "target": target.to_json(), "path": str(path)}
    codegen.build(payload)


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """`tools(name, program)`: from then on the PATH has that program alone, by that name."""

    def only(name, found):
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / name).symlink_to(shutil.which(found))
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.delenv("CXX", raising=False)
        monkeypatch.delenv("CC", raising=False)

    return only


def test_a_candidate_needs_no_compiler(tools, tmp_path):
    if not shutil.which("ld"):
        pytest.skip("needs ld")
    tools("ld", "ld")
    build(HOST, tmp_path / "k.so")
    y = tvm.runtime.empty((64,))
    tvm.runtime.load_module(str(tmp_path / "k.so"))["compute"](y, y)
    assert [path.name for path in tmp_path.glob("k.*")] == ["k.so"]


def test_a_linker_that_refuses_is_told_apart_from_a_build_that_fails(tools, tmp_path):
    gnu = linker.architecture(FOREIGN.triple) + "-linux-gnu-ld"
    tools(gnu, "ld")  # this machine's own, which knows no other
    with pytest.raises(LinkError, match=r"k\.so cannot be linked: .*ld:"):
        build(FOREIGN, tmp_path / "k.so")
    builder = Builder(FOREIGN, tmp_path)
    try:
        builder.start()
        (failed,) = builder.build([BuildJob(canonical_text(kernel()), "default")])
    finally:
        builder.close()
    assert isinstance(failed, Failure)
    assert (failed.error, "LinkError" in failed.message) == ("link", True)


def test_a_compiler_that_refuses(tools, tmp_path):
    tools("g++", "false")
    with pytest.raises(LinkError, match=r"k\.so cannot be linked: .*g\+\+ .* said nothing"):
        build(HOST, tmp_path / "k.so")


def test_no_linker_for_the_target_is_one_error_with_its_remedy(tools, tmp_path):
    if find_spec("ziglang"):
        pytest.skip("ziglang is here, and links for every architecture")
    tools("true", "true")
    with pytest.raises(AnsorError, match=f"no linker for {FOREIGN.triple}") as caught:
        Builder(FOREIGN, tmp_path).start()
    assert "pip install ziglang" in caught.value.hint
    assert "apt-get install gcc-" in caught.value.hint
