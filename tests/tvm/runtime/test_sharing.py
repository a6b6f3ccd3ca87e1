"""A model in several threads, in forked children, and given back."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, compiled

from ansor_deploy.errors import UsageError
from ansor_deploy.runtime.model import Model

FORKED = """
import json, os, sys, threading, time
from pathlib import Path
import numpy as np
from ansor_deploy.runtime.model import Model
model = Model(Path(sys.argv[1]), json.loads(sys.argv[2]))
given = {i.name: np.full(i.shape, -1, i.dtype) for i in model.inputs}
wanted = model(**given)["y"]
over = False
def run():
    while not over: model(**given)
running = threading.Thread(target=run)
running.start()
for _ in range(10):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        over = True
        os._exit(0 if all(np.array_equal(model(**given)["y"], wanted) for _ in range(3)) else 3)
    assert os.waitpid(child, 0)[1] == 0
over = True
running.join()
assert np.array_equal(model(**given)["y"], wanted)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """(path of a library that computes for a while, what its manifest must say of it)."""
    path = tmp_path_factory.mktemp("library") / "net.so"
    weights = {"w": graphs.randn(0, 512, 512)}
    nodes = [graphs.node("MatMul", "x w", "h"), graphs.node("Relu", "h", "y")]
    compiled(graphs.model(nodes, {"x": (64, 512)}, constants=weights)).export(path, HOST)
    tensor = {"shape": [64, 512], "dtype": "float32"}
    manifest = {
        "inputs": [{"name": "x", **tensor}],
        "outputs": [{"name": "y", **tensor}],
        "target": HOST.to_json(),
    }
    return path, manifest


def test_a_child_runs_what_another_thread_ran_when_it_was_forked(library):
    path, manifest = library
    words = [sys.executable, "-c", FORKED, str(path), json.dumps(manifest)]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr


def mapped(path):
    """How much of a file is mapped into this process, in bytes."""
    maps = Path("/proc/self/maps").read_text("utf-8").splitlines()
    ranges = [line.split()[0].split("-") for line in maps if line.endswith(str(path.resolve()))]
    return sum(int(end, 16) - int(start, 16) for start, end in ranges)


def test_a_model_that_is_closed_gives_its_weights_back(library):
    path, manifest = library
    x = np.ones((64, 512), "float32")
    kept = Model(path, manifest)  # its code stays mapped once
    before = mapped(path)
    with Model(path, manifest) as model:
        model(x=x)
        assert mapped(path) >= before + 512 * 512 * 4
    assert mapped(path) == before
    with pytest.raises(UsageError, match="it is closed"):
        model(x=x)
    model.close()
    assert np.isfinite(kept(x=x)["y"]).all()
