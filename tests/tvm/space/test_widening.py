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


def of_bytes(rows: int, columns: int = 48, depth: int = 64) -> tvm.IRModule:
    """A product of rows of 16 bits with a constant weight of bytes."""
    x = te.placeholder((rows, depth), name="x", dtype="int16")
    w = te.placeholder((depth, columns), name="w", dtype="int8")
    k = te.reduce_axis((0, depth))
    term = lambda i, j: x[i, k].astype("int32") * w[k, j].astype("int32")  # noqa: E731
    sums = te.compute((rows, columns), lambda i, j: te.sum(term(i, j), axis=k), name="sums")
    return program([x, w], topi.nn.relu(sums), free=(1,))


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


AVX2 = replace(TARGET, cpu="x86-64-v3", features=(), vector_bytes=32, vector_registers=16)


@pytest.mark.parametrize(
    ("rows", "columns", "shared"),
    [(1, 48, False), (61, 48, True), (61, 77, False), (500, 72, True)],
)
def test_many_rows_of_16_bits_share_bytes_that_are_widened(rows, columns, shared):
    """Not where columns are left over: the instruction reads behind them in the weights."""
    sch = default_schedule(of_bytes(rows, columns), AVX2)
    assert bool(marked(sch)) == shared
    x, w, out = built.kernel_outputs(sch.mod)
    assert (out == np.maximum(x.astype(np.int32) @ w.astype(np.int32), 0)).all()


def test_bytes_are_widened_by_vectors_and_once():
    func = default_schedule(of_bytes(61), AVX2).mod["main"]
    text = compiled({"main": func.with_attr("global_symbol", "main")}, AVX2).inspect_source("asm")
    found = re.findall(r"^\s+(vpmovsx\w+|vpmaddwd)\s", text, re.MULTILINE)
    assert 0 < found.count("vpmovsxbw") < found.count("vpmaddwd") / 6
    assert set(found) == {"vpmovsxbw", "vpmaddwd"}


def test_few_pairs_of_bytes_are_summed_up_one_at_a_time():
    """If all eight were written out, LLVM would keep their products, and spill the sums."""
    func = default_schedule(of_bytes(61, depth=16), AVX2).mod["main"]
    text = compiled({"main": func.with_attr("global_symbol", "main")}, AVX2).inspect_source("asm")
    sums = AVX2.vector_registers - 4
    assert sums < text.count("vpmaddwd") < 4 * sums


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
