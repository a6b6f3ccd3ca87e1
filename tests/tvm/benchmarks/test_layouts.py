"""Graphs of layouts: the same for the same seed, right, and within their tensors."""

from __future__ import annotations

import faulthandler
import os
import signal
from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from helpers import built
from tvm import te

from ansor_deploy._tvm import tvm_target
from ansor_deploy.codegen.kernels.lowering import PIPELINE
from ansor_deploy.runtime import native
from benchmarks.fuzz import fences, layouts
from benchmarks.fuzz.layout_graphs import beginning, graph

ELEMENTS = 100  # which no page ends with


@pytest.mark.parametrize("seed", range(5))
def test_a_seed_makes_a_graph_and_the_same_again(seed):
    proto, exact = graph(seed)
    assert (proto.SerializeToString(), exact) == (graph(seed)[0].SerializeToString(), exact)
    for count in range(1, len(proto.graph.node) + 1):
        onnx.checker.check_model(beginning(proto, count), full_check=True)


@pytest.mark.parametrize("seed", [11, 17, 28])
def test_a_graph_is_right_and_stays_within_its_tensors(seed, tmp_path):
    ended = layouts.attempt({"seed": seed, "target": "host", "folder": str(tmp_path)})
    assert (ended["end"], ended["said"]) == ("done", "")


def ended(off: int, callers: bool, log: Path) -> str:
    """How a process ends in which a kernel reads elements that lie so far off."""
    x = te.placeholder((ELEMENTS,), name="x")
    shifted = te.compute(x.shape, lambda i: x[i + off], name="y")
    func = te.create_prim_func([x, shifted]).with_attr("global_symbol", "main")
    library = tvm.compile(
        tvm.IRModule({"main": func}), tvm_target(built.HOST), tir_pipeline=PIPELINE
    )
    tensors = tuple(native.tensor(np.ones(ELEMENTS, np.float32)) for _ in range(2))
    places = frozenset(np.from_dlpack(one).ctypes.data for one in tensors if callers)
    run = fences.Run([("kernel", library["main"], tensors)], [], places)
    if not (child := os.fork()):
        faulthandler.disable()
        os._exit(bool(fences.faults(run, log)))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {0: "well", 1: "found", -signal.SIGSEGV: "killed"}[code]


@pytest.mark.parametrize(
    ("off", "callers", "end"),
    [
        (0, True, "well"),
        (0, False, "well"),
        (1, True, "killed"),
        (-1, True, "killed"),
        (1, False, "found"),
        (-1, False, "killed"),
        (16, False, "killed"),
    ],
)
def test_a_kernel_that_reads_beyond_its_tensor_is_found(off, callers, end, tmp_path):
    assert ended(off, callers, tmp_path / "kernel.txt") == end
