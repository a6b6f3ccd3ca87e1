"""Kernels are compiled each by itself; one that is too much for the compiler gets a simpler one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, imported, main_of

from ansor_deploy.codegen.kernels import objects
from ansor_deploy.codegen.kernels.objects import Kernel, Refusal, compile_kernels
from ansor_deploy.codegen.model import compile_model
from ansor_deploy.errors import AnsorError
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.runtime.native import array, tensor

NET = graphs.model(
    [graphs.node("MatMul", "x w", "h"), graphs.node("Relu", "h", "y")],
    {"x": (24, 96)},
    constants={"w": graphs.randn(0, 96, 64)},
)


@pytest.fixture(scope="module")
def model():
    found = imported(NET)
    return found, extract(found.mod, HOST)


@pytest.fixture(autouse=True)
def _nothing_is_cached(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def hostile(monkeypatch):
    """A compiler that fails at the default schedule, in a way that is given."""

    def fail(how):
        monkeypatch.setenv("ANSOR_DEPLOY_TEST_FAULT", how)
        if how != "memory":  # which takes seconds on a machine that is busy
            monkeypatch.setattr(objects, "PROCESSOR_SECONDS", 1)
        monkeypatch.setattr(objects, "_COMPILES", "helpers.hostile_compiler")
        monkeypatch.setattr(objects, "_spare", [])

    yield fail
    for worker in objects._spare:
        worker.close()


@pytest.mark.refuses_defaults
@pytest.mark.parametrize(
    ("how", "why"), [("time", "more than 1 s"), ("memory", "MemoryError"), ("crash", "SIGABRT")]
)
def test_a_kernel_beyond_the_limits_gets_a_simpler_schedule(model, hostile, how, why):
    hostile(how)
    warned: list[str] = []
    built = compile_model(*model, {}, HOST, warn=warned.append)
    assert list(built.fallbacks.values()) == ["the inlined schedule"]
    assert why in warned[0]
    assert "under the default schedule" in warned[0]

    feeds = graphs.random_feeds(NET)
    have = array(main_of(built)(tensor(feeds["x"])))
    np.testing.assert_allclose(have, graphs.run(NET, feeds)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.refuses_defaults
def test_what_no_schedule_helps_is_an_error_that_names_the_task(model, hostile):
    hostile("always")
    with pytest.raises(AnsorError, match=r"task matmul_relu cannot be compiled: .* SIGABRT"):
        compile_model(*model, {}, HOST)


@pytest.mark.refuses_defaults
def test_the_error_has_the_frames_of_the_compilers_process(model, hostile):
    hostile("complaint")
    with pytest.raises(AnsorError, match="ValueError: no such kernel") as caught:
        compile_model(*model, {}, HOST)
    (frames,) = caught.value.__cause__.__notes__
    assert re.search(r'hostile_compiler.py", line \d+, in complain\n', frames)


def test_what_the_compiler_says_of_a_kernel_is_the_reason():
    (result,) = compile_kernels([Kernel("kernel_x", "no program")], HOST, lambda *_: None).values()
    assert isinstance(result, Refusal)
    assert result.reason


def test_equal_programs_are_compiled_once(model):
    seen: list[tuple[int, int]] = []
    program = _program(model)
    made = compile_kernels([program] * 3, HOST, lambda *done: seen.append(done))
    assert seen == [(1, 1)]
    assert list(made) == [program.symbol]


def _program(model):
    from ansor_deploy.codegen.executable import lower_model

    found, tasks = model
    scheduled = {name: (task.key.workload, task.mod["main"]) for name, task in tasks.items()}
    return lower_model(found.mod, scheduled, HOST).kernels[0]
