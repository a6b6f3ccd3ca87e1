"""A library runs without the compiler, and beside it, on one copy of TVM's runtime."""

import json
import shutil
import subprocess
import sys

import pytest
from helpers import graphs
from helpers.built import HOST, compiled

from ansor_deploy.errors import AnsorError
from ansor_deploy.runtime.model import Model

RUN = """
import json, sys
from pathlib import Path
import numpy as np
{before}
from ansor_deploy.runtime import Model
model = Model(Path(sys.argv[1]), json.loads(sys.argv[2]))
given = {{i.name: np.ones(i.shape, i.dtype) for i in model.inputs}}
have = model(**given)
{after}
again = model(**given)
assert all(np.array_equal(have[name], again[name]) for name in have)
maps = open("/proc/self/maps").read()
runtimes = {{line.split()[-1] for line in maps.splitlines() if "libtvm_runtime.so" in line}}
assert len(runtimes) == 1, runtimes
print(json.dumps("libtvm_compiler" in maps))
"""
COMPILER = "from ansor_deploy._tvm import tvm; tvm.ir.save_json(tvm.tirx.IntImm('int32', 1))"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """(path of a small library, what its manifest must say of it)."""
    path = tmp_path_factory.mktemp("library") / "relu.so"
    compiled(graphs.model([graphs.node("Relu", "x", "y")], {"x": (4, 8)})).export(path, HOST)
    tensor = {"shape": [4, 8], "dtype": "float32"}
    manifest = {
        "inputs": [{"name": "x", **tensor}],
        "outputs": [{"name": "y", **tensor}],
        "target": HOST.to_json(),
    }
    return path, manifest


@pytest.mark.parametrize(
    ("before", "after", "compiler"),
    [("", "", False), (COMPILER, "", True), ("", COMPILER, True)],
    ids=["alone", "compiler first", "compiler last"],
)
def test_runtime_and_compiler_share_a_process(library, before, after, compiler):
    path, manifest = library
    code = RUN.format(before=before, after=after)
    words = [sys.executable, "-c", code, str(path), json.dumps(manifest)]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) is compiler


def test_what_it_takes_and_gives_is_printed(library):
    assert repr(Model(*library)) == f"<{library[0]}: x: float32[4, 8] -> y: float32[4, 8]>"


def test_what_is_no_library_is_refused(library, tmp_path):
    _, manifest = library
    for name, content in (("text.so", b"no library"), ("empty.so", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(AnsorError, match=f"{name}: cannot be loaded"):
            Model(tmp_path / name, manifest)


def test_a_library_that_is_no_model_is_refused(tmp_path, library):
    _, manifest = library
    source = tmp_path / "plain.c"
    source.write_text("int nothing;")
    path = tmp_path / "plain.so"
    subprocess.run([shutil.which("gcc"), "-shared", "-o", str(path), str(source)], check=True)
    with pytest.raises(AnsorError, match="cannot be loaded"):
        Model(path, manifest)
