"""The threads that a library brings along."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, compiled
from onnx import TensorProto

from ansor_deploy.codegen.llvm_text import header
from ansor_deploy.codegen.thread_pool import SOURCE, TEXT, thread_pool

ASSETS = Path(__file__).parents[2] / "assets"
LOOPS, LATE = ASSETS / "thread_pool_loops.c", ASSETS / "thread_pool_late.c"
TWO = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
ROWS, COLUMNS = 4096, 64

START = """
import json, os, sys, threading, time
import numpy as np
from pathlib import Path
from ansor_deploy.runtime import Model

def threads():
    return len(list(Path("/proc/self/task").iterdir()))

def load(path):
    return Model(Path(path), json.loads(sys.argv[1]), threads=2)

x = np.arange({rows} * {columns}, dtype=np.float32).reshape({rows}, {columns}) / 1e5
rows = np.arange({rows}, dtype=np.float32)[::-1].copy()
def right(model, rows=rows):
    (made,) = model(x=x, rows=rows).values()
    return np.array_equal(made, np.maximum(x[rows.astype(int)], 0))
before = threads()
model = load(sys.argv[2])
"""
SHARED = """
other = load(sys.argv[3])
assert right(model) and right(other)
assert threads() == before + 1, threads() - before
held = []
turns = [threading.Thread(target=lambda m=m: held.extend(right(m) for _ in range(50)))
         for m in (model, other)]
for one in turns: one.start()
for one in turns: one.join()
assert held == [True] * 100
"""
ONE_MODEL = """
given = [rows, rows[::-1].copy()]
held = []
turns = [threading.Thread(target=lambda g=g: held.extend(right(model, g) for _ in range(50)))
         for g in given]
for one in turns: one.start()
for one in turns: one.join()
assert held == [True] * 100
"""
FORKED = """
assert right(model)
child = os.fork()
if child == 0:
    os._exit(0 if right(model) else 3)
assert os.waitpid(child, 0)[1] == 0
"""
ASLEEP = """
assert right(model)
time.sleep(0.05)
began = time.process_time()
time.sleep(0.5)
assert time.process_time() - began < 0.1
assert right(model)
"""
# Where all other processors are busy, the system wakes a thread on its caller's.
CROWDED = """
known = set(os.listdir("/proc/self/task"))
assert right(model)
(worker,) = map(int, set(os.listdir("/proc/self/task")) - known)
first, second = sorted(os.sched_getaffinity(0))[:2]
os.sched_setaffinity(0, {{first}})
os.sched_setaffinity(worker, {{first}})
until = time.monotonic() + 60
while first in os.sched_getaffinity(worker):
    assert right(model) and time.monotonic() < until
assert second in os.sched_getaffinity(worker)
assert right(model)
"""
REFUSED = """
from ansor_deploy.errors import UsageError
for at in (0, {rows} - 1, {rows} // 2):
    wrong = rows.copy()
    wrong[at] = {rows}
    try:
        right(model, wrong)
    except UsageError as error:
        assert "is not in" in error.text, error.text
    else:
        sys.exit("nothing was raised")
    assert right(model)
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """(what a manifest says, a library, a copy of it)."""
    folder = tmp_path_factory.mktemp("libraries")
    nodes = [
        graphs.node("Cast", "rows", "whole", to=TensorProto.INT64),
        graphs.node("Gather", "x whole", "taken"),
        graphs.node("Relu", "taken", "y"),
    ]
    proto = graphs.model(nodes, {"x": (ROWS, COLUMNS), "rows": (ROWS,)})
    first, second = folder / "one.so", folder / "other.so"
    compiled(proto).export(first, HOST)
    shutil.copy(first, second)
    inputs = [
        {"name": "x", "shape": [ROWS, COLUMNS], "dtype": "float32"},
        {"name": "rows", "shape": [ROWS], "dtype": "float32"},
    ]
    outputs = [{"name": "y", "shape": [ROWS, COLUMNS], "dtype": "float32"}]
    manifest = {"inputs": inputs, "outputs": outputs, "target": HOST.to_json()}
    return json.dumps(manifest), first, second


@TWO
@pytest.mark.parametrize(
    "script",
    [
        *(SHARED, ONE_MODEL, FORKED, ASLEEP, REFUSED),
        # A thread that others keep from its task stays away for longer than the script waits.
        pytest.param(CROWDED, marks=pytest.mark.alone),
    ],
)
def test_a_library_runs_on_the_threads_of_its_process(script, libraries):
    text = (START + script).format(rows=ROWS, columns=COLUMNS)
    ran = subprocess.run(
        [sys.executable, "-c", text, *map(str, libraries)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("users", [1, 3])
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_every_iteration_is_done_once_whoever_comes(sanitizer, users, tmp_path):
    """Eight threads on however many processors, some asleep; in some loops, a task fails."""
    program = tmp_path / "loops"
    flags = ["-O1", "-g", f"-fsanitize={sanitizer}", f"-I{SOURCE.parent}", "-pthread"]
    subprocess.run([shutil.which("gcc"), *flags, LOOPS, "-o", program], check=True)
    ran = subprocess.run([program, str(users), "8"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "7 threads\n"), ran.stderr


@TWO
def test_a_thread_that_kept_the_others_waiting_stays_away_for_a_while(tmp_path):
    program = tmp_path / "late"
    flags = ["-O1", f"-I{SOURCE.parent}", "-pthread", LATE]
    subprocess.run([shutil.which("gcc"), *flags, "-o", program], check=True)
    ran = subprocess.run([program], capture_output=True, text=True, timeout=100, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_compiled_text_is_of_this_source():
    assert TEXT.read_text().partition("\n")[0] == header(SOURCE), "run docs/make_llvm.py"
    assert not re.search("x86|aarch64|datalayout|triple|target-cpu", TEXT.read_text())


def test_a_librarys_threads_are_as_many_as_the_target_has_cores(tmp_path):
    program = tmp_path / "pool.o"
    program.write_bytes(thread_pool(HOST))
    symbols = subprocess.run(
        [shutil.which("nm"), program], capture_output=True, text=True, check=True
    ).stdout
    assert "u ansor_deploy_pool_1" in symbols  # one in a process
    assert np.int32(HOST.cores).tobytes() in program.read_bytes()
