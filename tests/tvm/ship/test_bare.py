"""A library is verified as users run it: where there is the runtime, and no compiler."""

import numpy as np
import onnx
import pytest
from helpers.built import assert_like_oracle
from helpers.cli_inside import program
from helpers.cli_process import refused
from helpers.graphs import model, node, randn

from ansor_deploy._tvm import tirx, tvm
from ansor_deploy.codegen import executable
from ansor_deploy.devices import bare
from ansor_deploy.model.operators.operator import Operator
from ansor_deploy.model.operators.table import OPERATORS
from ansor_deploy.model.relax import importer
from ansor_deploy.system.worker import WorkerFailure

WORDS = ("build", "net.onnx", "-o", "net.so", "--trials", "0", "--registry", "r.db")


@pytest.fixture
def folder(tmp_path):
    """A folder with a model of one operator."""
    onnx.save(model([node("Relu", "x", "y")], {"x": (4, 8)}), tmp_path / "net.onnx")
    return tmp_path


@pytest.fixture
def calling(monkeypatch):
    """Have a Relu be the call of a function."""

    def have(function):
        body = lambda ins, outs: tirx.Evaluate(function)  # noqa: E731
        made = lambda x: tvm.te.extern([x.shape], [x], body, dtype="float32")  # noqa: E731
        relu = lambda call: call.bb.emit_te(made, call.inputs[0], primfunc_name_hint="called")  # noqa: E731
        monkeypatch.setitem(OPERATORS, ("", "Relu"), Operator("Relu", convert=relu))

    return have


def test_what_only_the_compiler_has_is_missed(folder, calling, monkeypatch):
    calling(tirx.call_packed("tvm.contrib.sort.sort"))
    monkeypatch.setattr(executable, "check_calls", lambda mod: None)
    missing = "Cannot find function tvm.contrib.sort.sort"
    refused(program(folder, *WORDS), 6, "the library does not run: ", missing)
    assert not (folder / "net.so").exists()


def test_a_library_that_crashes_ends_no_build(folder, calling):
    calling(tirx.call_extern("int32", "raise", 11))
    refused(program(folder, *WORDS), 6, "the library crashes: SIGSEGV")
    assert not (folder / "net.so").exists()


def test_a_library_that_somebody_kills_is_the_machines_fault(folder, calling):
    calling(tirx.call_extern("int32", "raise", 9))
    refused(program(folder, *WORDS), 9, "was killed twice", "SIGKILL")


def test_a_library_that_does_not_end_is_ended(folder, calling, monkeypatch):
    calling(tirx.call_extern("int32", "sleep", 60))
    monkeypatch.setattr(bare, "RUN_SECONDS", 0.5)
    refused(program(folder, *WORDS), 6, "the library does not end: killed after 0.5 s")


def test_the_process_has_no_compiler():
    with bare.open_bare() as child:
        call = child._worker.call
        for function, asked in (("importlib:import_module", "tvm"),
                                ("tvm_ffi:get_global_func", "tvm.contrib.sort.sort")):  # fmt: skip
            with pytest.raises(WorkerFailure, match=asked):
                call(function, asked, 10.0)


def test_what_no_kernel_writes_is_not_right_by_chance(monkeypatch):
    """As when pads were fused as the ends of tiles that do not reach them."""
    monkeypatch.setattr(importer, "with_patterns", lambda mod: mod)
    constants = {"w": randn(0, 24, 30), "pads": np.array([0, 0, 0, 4])}
    nodes = [node("MatMul", "x w", "m"), node("Pad", "m pads", "y")]
    proto = model(nodes, {"x": [16, 24]}, constants=constants)
    with pytest.raises(AssertionError, match="off by"):
        assert_like_oracle(proto)
