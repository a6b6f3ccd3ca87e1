"""Multiply-adds by a lane: four steps of a reduction read a row once, and compute the same."""

from typing import Any

import numpy as np
import pytest
import tvm
from helpers import built, programs
from tvm import te

from ansor_deploy._tvm import collect, tirx, tvm_target
from ansor_deploy.codegen.kernels.lowering import flattening, passes_at
from ansor_deploy.marks import Place, row_vectors
from ansor_deploy.marks.row_vectors import ROW_VECTORS, reading_vectors
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.rows import fuse_rows
from ansor_deploy.space.tile_sizes import register_tiles, takes_lanes
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from benchmarks.machine import hot_loops

A53 = load_target("cortex-a53", [shipped("targets")])
PROGRAMS = {
    "pointwise": programs.conv2d(14, 64, 48, 1, 1, 0),
    "convolution": programs.conv2d(7, 32, 40, 3, 2),
    "rows and columns that no tile divides": programs.matmul(59, 24, 53),
    "groups, in strips": programs.grouped(width=16),
}


@pytest.mark.parametrize("mod", PROGRAMS.values(), ids=PROGRAMS)
def test_it_computes_the_same(mod, monkeypatch):
    monkeypatch.setattr(row_vectors, "architecture", lambda triple: "aarch64")
    scheduled = default_schedule(mod, A53).mod
    assert ROW_VECTORS in scheduled.script()
    found, wanted = (built.kernel_outputs(one)[-1] for one in (scheduled, mod))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [(14, 64, 48), (56, 16, 96), (7, 512, 512)])
def test_fewer_instructions_are_left_beside_the_multiply_adds(size):
    """With a load for each element there are at least 1.36 a multiply-add."""
    loops = hot_loops.of_kernel(programs.conv2d(*size, 1, 1, 0), A53)
    hottest = max(loops, key=lambda one: one.multiply_adds)
    assert hottest.instructions < 1.3 * hottest.multiply_adds
    assert not hottest.stack


def product(depth: int, steps: int, kind: str = "float32", wide: str = "float32") -> tvm.IRModule:
    """A matrix product in tiles, so many steps of its reduction marked. wide: the type of sums."""
    x, w = te.placeholder((8, depth), kind, "x"), te.placeholder((depth, 4), kind, "w")
    k = te.reduce_axis((0, depth), name="k")

    def summed(i, j):
        return te.sum(x[i, k].astype(wide) * w[k, j].astype(wide), axis=k)

    out = te.compute((8, 4), summed, name="out")
    sch = tvm.s_tir.Schedule(programs.program([x, w], out)["main"])
    row, column, step = sch.get_loops(sch.get_sblock("out"))
    over, within = sch.split(step, [None, steps])
    sch.reorder(over, within, row, column)
    sch.unroll(within)
    sch.unroll(row)
    sch.vectorize(column)
    reading_vectors(sch, within)
    sch.decompose_reduction(sch.get_sblock("out"), over)
    return sch.mod


@pytest.mark.parametrize(
    ("depth", "steps", "lanes"), [(16, 8, 8), (12, 4, 4), (10, 4, 0), (6, 2, 0)]
)
def test_what_may_not_be_there_is_not_read(depth, steps, lanes, monkeypatch):
    """Of ten steps by four the last two of a vector lie behind the row."""
    monkeypatch.setattr(row_vectors, "architecture", lambda triple: "aarch64")
    mod = product(depth, steps)
    x, w, out = built.kernel_outputs(mod)
    np.testing.assert_allclose(out, x @ w, rtol=1e-5, atol=1e-5)
    assert len(shuffles(mod)) == lanes


def test_numbers_of_16_bits_are_widened_from_lanes(monkeypatch):
    monkeypatch.setattr(row_vectors, "architecture", lambda triple: "aarch64")
    mod = product(16, 8, "int16", "int32")
    x, w, out = built.kernel_outputs(mod)
    np.testing.assert_array_equal(out, x.astype("int32") @ w.astype("int32"))
    assert {str(one.ty.dtype) for one in shuffles(mod)} == {"int16x4"}


def shuffles(mod: tvm.IRModule) -> list[Any]:
    """The vectors of lanes that the pass for this mark leaves of a program."""
    passes = [tirx.transform.BindTarget(tvm_target(A53)), *flattening()]
    passes += [tirx.transform.VectorizeLoop(), *passes_at(Place.VECTORS)]
    made = tvm.transform.Sequential(passes)(mod)["main"]
    return collect(made.body, tirx.Shuffle)


def test_the_search_is_offered_tiles_of_both_forms():
    view = built.reduction(programs.conv2d(28, 64, 96, 1, 1, 0))
    fuse_rows(view.sch, view)
    offered = register_tiles(view, A53, [1] * len(view.node.iter_vars))
    lanes = {one[-2:]: takes_lanes(view, one, A53) for one in offered}
    assert takes_lanes(view, offered[0], A53)
    wanted = {(6, 12): True, (5, 16): True, (8, 8): True, (8, 12): False}
    assert wanted == {size: lanes.get(size) for size in wanted}


def test_where_an_element_of_memory_is_multiplied_by_it_stays_one():
    scheduled = default_schedule(PROGRAMS["pointwise"], built.HOST).mod
    assert ROW_VECTORS not in scheduled.script()
