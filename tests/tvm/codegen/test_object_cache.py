"""Object files are kept by what they were made from, and noticed where they are damaged."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import graphs
from helpers.built import HOST, imported

from ansor_deploy.codegen.executable import lower_model
from ansor_deploy.codegen.kernels import object_cache, objects
from ansor_deploy.codegen.kernels.objects import compile_kernels
from ansor_deploy.codegen.thread_pool import thread_pool
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.system.environment import cache_folder

# Processes of a user's own make the same files.
pytestmark = pytest.mark.optimised

NET = graphs.model(
    [graphs.node("MatMul", "x w", "h"), graphs.node("Softmax", "h", "y")],
    {"x": (24, 96)},
    constants={"w": graphs.randn(0, 96, 64)},
)
COMPILES = """
import sys
sys.path[:] = {path!r}
from test_object_cache import programs
from helpers.built import HOST
from ansor_deploy.codegen.kernels.objects import compile_kernels
sys.stdin.readline()
compile_kernels(programs(), HOST, warn=print)
"""


def programs():
    model = imported(NET)
    tasks = extract(model.mod, HOST)
    chosen = {
        name: (task.key.workload, default_schedule(task.mod, HOST).mod["main"])
        for name, task in tasks.items()
    }
    return lower_model(model.mod, chosen, HOST).kernels


@pytest.fixture(scope="module")
def found():
    return programs()


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """The folder of the cache, empty at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder("objects")


@pytest.fixture
def compiled(monkeypatch):
    """Symbols of the kernels that were really compiled, in any order."""
    asked: list[str] = []
    real = objects._compile

    def noting(kernel, *words):
        asked.append(kernel.symbol)
        return real(kernel, *words)

    monkeypatch.setattr(objects, "_compile", noting)
    return asked


def test_what_was_compiled_before_is_not_compiled_again(found, compiled):
    cold = compile_kernels(found, HOST)
    assert sorted(compiled) == sorted(kernel.symbol for kernel in found)
    compiled.clear()
    assert compile_kernels(found, HOST) == cold
    assert compiled == []


def test_code_does_not_depend_on_who_compiles_it_or_when(found, folder, monkeypatch):
    cold = compile_kernels(found, HOST)
    for path in folder.iterdir():
        path.unlink()
    monkeypatch.setattr(objects, "KERNELS_PER_WORKER", 1)
    assert compile_kernels(reversed(found), HOST) == cold


def test_a_part_written_in_c_is_compiled_once(folder):
    thread_pool(HOST)
    (entry,) = folder.iterdir()
    entry.write_bytes(hashlib.sha256(b"code").digest() + b"code")
    assert thread_pool(HOST) == b"code"
    assert thread_pool(replace(HOST, cores=HOST.cores + 1)) != b"code"


def test_another_target_or_compiler_finds_nothing(found, compiled, monkeypatch):
    compile_kernels(found, HOST)
    for other in (replace(HOST, cpu="x86-64", features=()), HOST):
        compiled.clear()
        compile_kernels(found, other)
        assert len(compiled) == len(found) * (other is not HOST)
    monkeypatch.setattr(object_cache, "_generator", lambda: ["another version"])
    compile_kernels(found, HOST)
    assert len(compiled) == len(found)


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b[:60] + b"?" + b[61:], lambda b: b""]
)
def test_a_damaged_entry_is_made_anew(found, folder, compiled, damage):
    cold = compile_kernels(found, HOST)
    victim = min(folder.iterdir())
    whole = victim.read_bytes()
    victim.write_bytes(damage(whole))
    compiled.clear()
    assert compile_kernels(found, HOST) == cold
    assert len(compiled) == 1
    assert victim.read_bytes() == whole


def test_what_was_not_asked_for_longest_goes_first(found, folder, compiled, monkeypatch):
    compile_kernels(found, HOST)
    old, *rest = found
    for path in folder.iterdir():
        os.utime(path, (1e9, 1e9))
    compile_kernels(rest, HOST)  # asked for again
    size = sum(path.stat().st_size for path in folder.iterdir())
    monkeypatch.setattr(object_cache, "MOST_BYTES", size)
    compile_kernels([replace(old, symbol="kernel_new")], HOST)
    compiled.clear()
    compile_kernels(found, HOST)
    assert compiled == [old.symbol]


def test_a_process_looks_at_all_entries_again_once_it_may_have_put_too_much(found, monkeypatch):
    looked = []
    real = object_cache._trim
    monkeypatch.setattr(object_cache, "_trim", lambda folder: looked.append(1) or real(folder))
    for at, kernel in enumerate(found):
        compile_kernels([replace(kernel, symbol=f"kernel_{at}")], HOST)
    assert len(looked) == 1
    monkeypatch.setattr(object_cache, "MOST_BYTES", 0)
    compile_kernels([replace(found[0], symbol="kernel_last")], HOST)
    assert len(looked) == 2


def test_what_a_killed_process_left_goes_in_time(found, folder, monkeypatch):
    folder.mkdir(parents=True)
    left = folder / ".entry.123"
    left.write_bytes(b"half")
    compile_kernels(found[:1], HOST)
    assert left.exists()  # it may still be written
    os.utime(left, (1e9, 1e9))
    monkeypatch.setattr(object_cache, "_known", {})  # as in another process
    compile_kernels(found, HOST)
    assert not left.exists()


def test_a_folder_that_cannot_be_written_to_costs_a_warning(found, folder, compiled):
    folder.write_text("no folder")
    warned: list[str] = []
    first = compile_kernels(found, HOST, warn=warned.append)
    assert len(warned) == 1
    assert str(folder) in warned[0]
    assert compile_kernels(found, HOST) == first
    assert len(compiled) == 2 * len(found)


def test_two_processes_share_it(found, folder):
    path = [str(Path(__file__).parent), *sys.path]
    words = [sys.executable, "-c", COMPILES.format(path=path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as one, subprocess.Popen(words, **pipes) as other:
        outputs = [process.communicate("\n")[0] for process in (one, other)]
    assert outputs == ["", ""]
    assert [process.returncode for process in (one, other)] == [0, 0]
    kept = {path.read_bytes()[32:] for path in folder.iterdir()}
    names = {path.name for path in folder.iterdir()}
    assert set(compile_kernels(found, HOST).values()) <= kept
    assert {path.name for path in folder.iterdir()} == names
