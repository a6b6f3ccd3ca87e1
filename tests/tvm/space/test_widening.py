"""Tiles of many rows share weights of 16 bits as float32; a schedule says which, and may not."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import tvm
from helpers import built
from helpers.graphs import model, node, randn
from helpers.programs import program
from tvm import te, topi

from ansor_deploy._tvm import collect, tirx
from ansor_deploy.codegen.kernels.lowering import compiled
from ansor_deploy.marks.widened_panels import WIDENED
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump, replay
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

TARGET = replace(built.with_vectors(64, 32), cores=1, l1_bytes=48 << 10, l2_bytes=2 << 20)


def layer(rows: int, dtype: str = "float16", free: tuple[int, ...] = (1,)) -> tvm.IRModule:
    """A product with a constant weight of 16 bits."""
    x = te.placeholder((rows, 64), name="x")
    w = te.placeholder((64, 100), name="w", dtype=dtype)
    return program([x, w], topi.matmul(x, topi.cast(w, "float32")), free=free)


def strided(columns: int) -> tvm.IRModule:
    """A convolution that is padded in strips."""
    x = te.placeholder((1, 56, 56, 128), name="x")
    w = te.placeholder((3, 3, 128, columns), name="w", dtype="float16")
    wide = topi.cast(w, "float32")
    return program([x, w], topi.nn.relu(topi.nn.conv2d_nhwc(x, wide, 2, 1, 1)), free=(1,))


def marked(sch: tvm.s_tir.Schedule) -> list[tirx.For]:
    """The loops whose tiles share weights."""
    loops = collect(sch.mod["main"].body, tirx.For)
    return [loop for loop in loops if WIDENED in (loop.annotations or {})]


@pytest.mark.parametrize(("rows", "shared"), [(1, False), (4, False), (61, True), (600, True)])
def test_many_rows_share_panels(rows, shared):
    sch = default_schedule(layer(rows), TARGET)
    assert bool(marked(sch)) == shared
    x, w, out = built.loop_outputs(sch.mod)
    np.testing.assert_allclose(out, x @ w.astype(np.float32), rtol=1e-4, atol=1e-4)


def test_rows_that_pass_by_all_panels_share_all_of_them():
    (loop,) = marked(default_schedule(layer(10_000), TARGET))
    assert loop.kind == tirx.ForKind.PARALLEL


def test_strips_of_few_tiles_share_all_of_them():
    (loop,) = marked(default_schedule(strided(128), TARGET))
    assert loop.kind == tirx.ForKind.PARALLEL


def test_a_trace_of_before_is_valid():
    """It has weights converted in each load, and stays as it is."""
    sch = default_schedule(layer(61), TARGET)
    steps = [one for one in sch.trace.insts if WIDENED not in [str(attr) for attr in one.attrs]]
    text = dump(tvm.s_tir.schedule.Trace(steps, sch.trace.decisions))
    assert len(steps) == len(sch.trace.insts) - 1
    assert not marked(replay(layer(61), text))


def test_panels_count_as_memory_of_a_run():
    weight = (randn(0, 64, 96) * 0.1).astype(np.float16)
    nodes = [node("Cast", "w", "v", to=1), node("MatMul", "x v", "y")]
    proto = model(nodes, {"x": [500, 64]}, constants={"w": weight})
    (use,) = built.compiled(proto, TARGET).memory.buffers
    assert use.size % (4 * 64) == 0


@pytest.mark.parametrize(("dtype", "instruction"), [("float16", "fcvtl"), ("bfloat16", "shll")])
@pytest.mark.parametrize("rows", [1, 61])
def test_an_a53_converts_vectors(rows, dtype, instruction):
    """Where LLVM finds no instruction for that, it calls a function for each element."""
    target = load_target("cortex-a53", [shipped("targets")])
    func = default_schedule(layer(rows, dtype, free=()), target).mod["main"]
    text = compiled({"main": func.with_attr("global_symbol", "main")}, target).inspect_source("asm")
    found = re.findall(r"^\s+(\w+)\s+(\S+)", text, re.MULTILINE)
    assert instruction in {name for name, _ in found}
    assert not [to for name, to in found if name == "bl" and "__extend" in to]
