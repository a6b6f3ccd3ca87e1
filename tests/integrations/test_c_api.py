"""A library in C and C++ programs, without Python: the numbers are ONNX Runtime's."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers import graphs
from helpers.c_programs import SANITIZED, STRICT, compiled, hooks
from helpers.cli_inside import answer
from msgspec import convert

from ansor_deploy.runtime import load
from ansor_deploy.ship.manifest import Interface, read_manifest
from ansor_deploy.ship.outputs.c_header import header
from ansor_deploy.ship.verify.tolerance import compare

HERE = Path(__file__).parent


def two_heads():
    """Two inputs, two outputs, of three types, with names that C cannot have."""
    nodes = [
        graphs.node("Conv", "im_age/1 w", "c", pads=[1, 1, 1, 1]),
        graphs.node("GlobalAveragePool", "c", "p"),
        graphs.node("Flatten", "p", "f"),
        graphs.node("Where", "switch f low", "chosen"),
        graphs.node("Softmax", "chosen", "scores"),
        graphs.node("ArgMax", "scores", "1", axis=1, keepdims=0),
    ]
    inputs = {"im_age/1": ("float32", (1, 3, 8, 8)), "switch": ("bool", (1, 4))}
    outputs = {"scores": ("float32", (1, 4)), "1": ("int64", (1,))}
    constants = {"w": graphs.randn(0, 4, 3, 3, 3), "low": np.float32(-1)}
    return graphs.typed(nodes, inputs, outputs, constants)


def feeds():
    image = (np.arange(3 * 8 * 8) % 7 - 3).astype(np.float32).reshape(1, 3, 8, 8)
    return {"im_age/1": image, "switch": np.array([[True, False, True, True]])}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a library, its manifest and its header."""
    folder = tmp_path_factory.mktemp("a shop")
    onnx.save(two_heads(), folder / "model.onnx")
    answer(folder, "build", "model.onnx", "--trials", 0, "-o", "two-heads.so")
    text = header("two-heads.so", read_manifest(folder / "two-heads.so").interfaces)
    (folder / "two-heads.h").write_text(text)
    return folder


@pytest.fixture(scope="module")
def runner(shop):
    """`run_model.c`, which ends in an error where it reads amiss or leaks."""
    return compiled(shop, "gcc", "-std=c99", *SANITIZED, HERE / "run_model.c")


def run(runner, library, folder):
    for at, values in enumerate(feeds().values()):
        values.tofile(folder / f"in{at}")
    return subprocess.run([runner, library, folder], capture_output=True, text=True, check=False)


def test_a_c_program_computes_what_onnx_runtime_does(shop, runner, tmp_path):
    result = run(runner, shop / "two-heads.so", tmp_path)
    assert result.returncode == 0, result.stderr
    for at, want in enumerate(graphs.run(two_heads(), feeds())):
        have = np.fromfile(tmp_path / f"out{at}", want.dtype).reshape(want.shape)
        assert compare(have, want)[0]


@pytest.mark.parametrize(("watched", "meanwhile"), [("-O1", 10), ("-fsanitize=thread", 0)])
def test_threads_wait_for_each_other_and_forked_children_do_not_hang(watched, meanwhile, shop):
    """The sanitizer follows no child that is forked while other threads run."""
    program = compiled(shop, "gcc", "-std=c99", watched, HERE / "run_threads.c")
    result = subprocess.run(
        [program, shop / "two-heads.so", str(meanwhile)],
        env={**os.environ, "TSAN_OPTIONS": "ignore_noninstrumented_modules=1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert result.returncode == 0, result.stderr


def test_a_run_takes_the_threads_of_the_preset(shop, runner, tmp_path):
    """Which can be none that a library refuses, so that it is seen to be asked for."""
    shutil.copy(shop / "two-heads.so", tmp_path)
    manifest = json.loads((shop / "two-heads.json").read_text())
    for threads, fault in ((1, ""), (0, "a model takes one thread at least, and 0 are asked for")):
        manifest["preset"] = {"name": "latency", "threads": threads, "streams": 1, "tried": []}
        (tmp_path / "two-heads.json").write_text(json.dumps(manifest))
        result = run(runner, tmp_path / "two-heads.so", tmp_path)
        assert (result.returncode, fault in result.stderr) == (int(bool(fault)), True)


SCORES = "float32, 16 bytes"


def test_what_does_not_fit_is_refused_in_words(shop, runner, tmp_path):
    said = run(runner, shop / "two-heads.so", tmp_path).stdout.splitlines()
    library = shop / "two-heads.so"
    assert said[:6] == [
        f"{library}: it has 2 inputs and 2 outputs; given 1 and 2",
        f"{library}: im_age/1 is float32, 768 bytes; given float32, 767 bytes at NULL",
        f"{library}: im_age/1 is float32, 768 bytes; given int7, 767 bytes at NULL",
        f"{library}: it has 2 outputs, and 1 are expected",
        f"{library}: its input 0 is im_age/1, float32, 768 bytes; expected scores, {SCORES}",
        "a model takes one thread at least, and 0 are asked for",
    ]


@pytest.fixture(scope="module")
def typed(shop):
    return compiled(shop, "g++", "-std=c++11", HERE / "run_typed.cpp")


def test_a_typed_call_in_cpp(shop, typed):
    said = subprocess.run([typed, "two-heads.so"], cwd=shop, capture_output=True, check=True)
    have = np.array(said.stdout.split(), np.float64)
    scores, best = graphs.run(two_heads(), feeds())
    assert compare(have[:-1].astype(np.float32).reshape(scores.shape), scores)[0]
    assert have[-1] == best[0]


def test_a_library_that_is_not_the_headers(shop, typed, tmp_path):
    library = copied(shop, tmp_path)
    manifest = json.loads(library.with_suffix(".json").read_text())
    manifest["inputs"].reverse()
    library.with_suffix(".json").write_text(json.dumps(manifest))
    said = subprocess.run([typed, library], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert "its input 0 is switch, bool, 4 bytes; expected im_age/1, float32" in said.stderr


def test_a_library_of_two_shapes(shop, tmp_path):
    proto = graphs.batches()
    onnx.save(proto, tmp_path / "model.onnx")
    shapes = ("--input-shape", "x=1,3,8,8", "--input-shape", "x=3,3,8,8")
    answer(tmp_path, "build", "model.onnx", *shapes, "--trials", 0, "--header", "-o", "batches.so")
    made = compiled(tmp_path, "gcc", "-std=c99", *SANITIZED, HERE / "run_variants.c")
    library = tmp_path / "batches.so"
    result = subprocess.run([made, library], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    *numbers, none, beyond = result.stdout.splitlines()
    for line, batch in zip(numbers, (1, 3, 1, 3), strict=True):
        x = (np.arange(batch * 3 * 8 * 8) % 7 - 3).astype(np.float32).reshape(batch, 3, 8, 8)
        (want,) = graphs.run(proto, {"x": x})
        assert compare(np.array(line.split(), np.float32).reshape(want.shape), want)[0]
    takes = "x float32, 768 bytes; or x float32, 2304 bytes"
    assert none == f"{library}: what is given fits none of its 2 variants; it takes {takes}"
    assert beyond == f"{library}: it has no variant 2, but only 2"


def test_any_batch_of_a_range_runs_from_c(tmp_path):
    proto = graphs.batches()
    onnx.save(proto, tmp_path / "model.onnx")
    words = ("--input-shape", "x=1..7,3,8,8", "--trials", 0, "--header", "-o", "batches.so")
    answer(tmp_path, "build", "model.onnx", *words)
    made = compiled(tmp_path, "gcc", "-std=c99", *SANITIZED, HERE / "run_batches.c")
    library = tmp_path / "batches.so"
    result = subprocess.run([made, library], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    *numbers, refused = result.stdout.splitlines()
    x = (np.arange(7 * 3 * 8 * 8) % 11 - 3).astype(np.float32).reshape(7, 3, 8, 8)
    model = load(library)
    for line, rows in zip(numbers, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7], strict=True):
        assert np.array_equal(np.array(line.split(), np.float32), model(x=x[:rows])["y"].ravel())
    assert refused == f"{library}: it takes a batch of 1 to 7 rows; given 8"


def test_a_library_that_was_replaced_is_the_new_one(tmp_path):
    for operator in ("Neg", "Abs", "Relu"):
        net = graphs.model([graphs.node(operator, "x", "y")], {"x": (1, 2)})
        onnx.save(net, tmp_path / f"{operator}.onnx")
        answer(tmp_path, "build", f"{operator}.onnx", "--trials", 0, "--beside", "none")
    made = compiled(tmp_path, "gcc", "-std=c99", *SANITIZED, HERE / "run_replaced.c")
    command = [made, "Neg", "Abs", "Relu"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["-1 2", "1 2", "1 0"]


def copied(shop, folder):
    for suffix in (".so", ".json"):
        shutil.copy(shop / f"two-heads{suffix}", folder / f"copy{suffix}")
    return folder / "copy.so"


def cut(library):
    library.write_bytes(library.read_bytes()[:-1])


def zeroed(library):
    library.write_bytes(bytes(library.stat().st_size))


def foreign_machine(library):
    raw = bytearray(library.read_bytes())
    raw[18:20] = (183 if raw[18] == 62 else 62).to_bytes(2, "little")
    library.write_bytes(raw)


def no_manifest(library):
    library.with_suffix(".json").unlink()


def rewritten(change):
    def apply(library):
        manifest = json.loads(library.with_suffix(".json").read_text())
        change(manifest)
        library.with_suffix(".json").write_text(json.dumps(manifest))

    return apply


DAMAGES = {
    "missing": (Path.unlink, "copy.so: No such file or directory"),
    "cut": (cut, "bytes where its manifest says"),
    "zeroed": (zeroed, "copy.so: cannot be loaded: "),
    "for another machine": (foreign_machine, "copy.so: cannot be loaded: "),
    "no manifest": (no_manifest, "copy.json: no manifest of a library: No such file"),
    "too deep": (lambda at: at.with_suffix(".json").write_text('{"a":' * 100_000), "too deeply"),
    "not JSON": (lambda at: at.with_suffix(".json").write_text('{"a":'), "no manifest of a lib"),
    "not an object": (lambda at: at.with_suffix(".json").write_text("[1]"), "it is not an object"),
    "text for a list": (rewritten(lambda one: one.update(inputs="x")), "another type than it"),
    "number for a text": (
        rewritten(lambda one: one["inputs"][0].update(name=7)),
        "name is not a text",
    ),
    "no such type": (
        rewritten(lambda one: one["outputs"][1].update(dtype="complex7")),
        "no manifest of a library",
    ),
    "an impossible shape": (
        rewritten(lambda one: one["inputs"][0].update(shape=[1 << 40, 1 << 40])),
        "im_age/1 has an impossible shape",
    ),
    "another shape": (rewritten(lambda one: one["outputs"][0].update(shape=[1, 5])), "shape[1]"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_damaged_is_an_error_and_no_crash(shop, runner, tmp_path, name):
    damage, says = DAMAGES[name]
    library = copied(shop, tmp_path)
    damage(library)
    result = run(runner, library, tmp_path)
    assert result.returncode == 1, result.stderr
    assert result.stderr.startswith("error: ")
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1


ODD = ("", "7", "int", "a-b", "a_b", "A b", "ü/日本", 'q"\\*/??/\n', "a" * 200)


@pytest.mark.parametrize(("compiler", "standard"), [("gcc", "c99"), ("g++", "c++11")])
@pytest.mark.parametrize("inputs", [0, len(ODD)])
def test_headers_of_odd_names_compile(tmp_path, compiler, standard, inputs):
    tensors = [{"name": name, "dtype": "bfloat16", "shape": [2, 3]} for name in ODD]
    scalar = {"name": "int", "dtype": "bool", "shape": []}
    huge = {"name": "huge", "dtype": "uint64", "shape": [1 << 20, 1 << 20]}
    some = {
        "inputs": tensors[:inputs],
        "outputs": [*tensors, scalar, huge, {"name": "none", "dtype": "int8", "shape": [0]}],
    }
    text = header("3d-nét.v2.so", [convert(some, Interface)])
    (tmp_path / "net.h").write_text(text)
    (tmp_path / "main.c").write_text(f'#include "net.h"\n{MAIN}')
    language = ["-x", "c++" if compiler == "g++" else "c", f"-std={standard}"]
    command = [compiler, *STRICT, *language, f"-I{hooks('c')}", "-fsyntax-only"]
    subprocess.run([*command, tmp_path / "main.c"], check=True)


MAIN = """
int main(void) { return MODEL_3D_N_T_V2_OUT_INT_COUNT == 6 && model_3d_n_t_v2_load("x") != NULL; }
"""
