"""Weights lie once in a library, and in memory once for all processes that run it."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, compiled, main_of
from tvm.runtime import tensor

from ansor_deploy.errors import AnsorError
from ansor_deploy.runtime.model import Model

SIDE = 1500
BYTES = 4 * SIDE * SIDE

# Says how it uses memory, in bytes: of its own, more than before the library was loaded, and of
# the library's pages, its share. The second figure is taken when all processes have them.
RUN = """
import json, re, sys
from pathlib import Path
import numpy as np
from ansor_deploy.runtime import Model, native

def sizes(field, name=""):
    entries = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", open("/proc/self/smaps").read())
    texts = [one for one in entries if one.splitlines() and name in one.splitlines()[0]]
    return 1024 * sum(int(n) for text in texts for n in re.findall(rf"{field}: +(\\d+) kB", text))

native.ffi()
before = sizes("Anonymous")
model = Model(Path(sys.argv[1]), json.loads(sys.argv[2]))
model(x=np.ones((1, int(sys.argv[3])), "float32"))
print(sizes("Anonymous") - before, flush=True)
sys.stdin.readline()
print(sizes("Rss", sys.argv[1]), sizes("Pss", sys.argv[1]), flush=True)
sys.stdin.readline()
"""


def product(**weights):
    """The sum of products of a vector with square matrices."""
    nodes = [graphs.node("MatMul", f"x {name}", f"y_{name}") for name in weights]
    nodes.append(graphs.node("Sum", " ".join(f"y_{name}" for name in weights), "y"))
    return graphs.model(nodes, {"x": (1, SIDE)}, constants=weights)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "product.so"
    compiled(product(w=graphs.randn(0, SIDE, SIDE))).export(path, HOST)
    tensor = {"shape": [1, SIDE], "dtype": "float32"}
    manifest = {
        "inputs": [{"name": "x", **tensor}],
        "outputs": [{"name": "y", **tensor}],
        "target": HOST.to_json(),
    }
    return path, manifest


def test_processes_share_the_pages_of_the_file(library):
    path, manifest = library
    words = [sys.executable, "-c", RUN, str(path), json.dumps(manifest), str(SIDE)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as one, subprocess.Popen(words, **pipes) as other:
        for process in (one, other):
            assert int(process.stdout.readline()) < BYTES / 2
        for process in (one, other):
            process.stdin.write("\n")
            process.stdin.flush()
            resident, share = map(int, process.stdout.readline().split())
            assert resident >= BYTES
            assert share < 0.75 * resident


def test_equal_constants_lie_there_once():
    weight = graphs.randn(0, SIDE, SIDE)
    twice = compiled(product(a=weight, b=weight.copy()))
    assert len(twice.weights.block) < 1.5 * BYTES
    x = np.ones((1, SIDE), np.float32)
    have = main_of(twice)(tensor(x)).numpy()
    np.testing.assert_allclose(have, 2 * x @ weight, rtol=1e-3, atol=1e-3)


def test_a_library_without_its_weights_is_refused(library, tmp_path):
    path, manifest = library
    cut = tmp_path / "cut.so"
    cut.write_bytes(path.read_bytes()[: path.stat().st_size - BYTES])
    with pytest.raises(
        AnsorError, match=re.escape(f"{cut}: cannot be loaded: its weights are cut short")
    ):
        Model(cut, manifest)
