"""Tiles of rows share short weights as float32, and compute the same to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from helpers import built
from helpers.programs import program
from tvm import te

from ansor_deploy._tvm import collect, tirx, uses
from ansor_deploy.codegen.kernels.lowering import _cut_off
from ansor_deploy.marks.widened_panels import HALVES, WIDENED

ROWS, DEPTH, COLUMNS, SIZE, BLOCK = 12, 24, 16, 4, 8
SHORT = (*HALVES, "int8")


def product(
    marked: str | None, dtype: str = "float16", rows: int = ROWS, steps: int = DEPTH // 2
) -> tvm.s_tir.Schedule:
    """Tiles of rows over packed panels of weights. marked: the loop over these, or over tiles.

    steps: of the sum, that are not written out.
    """
    x = te.placeholder((rows, DEPTH), name="x")
    packed = te.placeholder((3, DEPTH, COLUMNS), name="packed", dtype=dtype)
    k = te.reduce_axis((0, DEPTH))
    scales = te.placeholder((3, DEPTH // BLOCK, COLUMNS), name="scales")
    inputs = [x, packed, scales] if dtype == "int8" else [x, packed]

    def weight(p, j):
        wide = packed[p, k, j].astype("float32")
        return wide * scales[p, k // BLOCK, j] if dtype == "int8" else wide

    value = lambda p, i, j: te.sum(x[i, k] * weight(p, j), axis=k)  # noqa: E731
    out = te.compute((3, rows, COLUMNS), value, name="out")
    sch = tvm.s_tir.Schedule(program(inputs, out), debug_mask="none")
    block = sch.get_sblock("out")
    panels, across, lanes, depth = sch.get_loops(block)
    tiles, row = sch.split(across, [None, SIZE])
    outer, written = sch.split(depth, [steps, None])
    sch.reorder(panels, tiles, outer, written, row, lanes)
    sch.parallel(panels)
    for loop in (written, row):
        sch.unroll(loop)
    sch.vectorize(lanes)
    if marked:
        sch.annotate({"panels": panels, "tiles": tiles}[marked], WIDENED, True)
    init = sch.decompose_reduction(block, outer)
    sch.vectorize(sch.get_loops(init)[-1])
    return sch


def lowered(sch: tvm.s_tir.Schedule) -> tirx.PrimFunc:
    return _cut_off(sch.mod)["main"]


def panels(func: tirx.PrimFunc) -> list[int]:
    """The sizes of all panels."""
    made = [one.buffer for one in collect(func.body, tirx.AllocBuffer)]
    return [int(buffer.shape[0]) for buffer in made if buffer.name == "panel"]


def short(node) -> list:
    """The loads of less than 32 bits in a part of a program."""
    return [one for one in collect(node, tvm.ir.TensorLoad) if str(one.ty.dtype) in SHORT]


@pytest.mark.parametrize("marked", ["tiles", "panels"])
@pytest.mark.parametrize("rows", [ROWS, SIZE])
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_it_computes_the_same(marked, rows, dtype):
    want, have = (built.kernel_outputs(product(m, dtype, rows).mod) for m in (None, marked))
    np.testing.assert_array_equal(have[-1].view(np.int32), want[-1].view(np.int32))
    assert np.abs(want[-1]).max() > 0


@pytest.mark.parametrize("dtype", SHORT)
def test_the_first_tile_makes_a_panel_and_others_read_it(dtype):
    func = lowered(product("tiles", dtype))
    (chosen,) = collect(func.body, tirx.IfThenElse)
    assert panels(func) == [DEPTH * COLUMNS]
    assert len(short(func.body)) == len(short(chosen.then_case)) > 0
    assert collect(chosen.else_case, tirx.For)
    (tiles,) = [one for one in collect(func.body, tirx.For) if uses(chosen.condition, one.loop_var)]
    assert int(tiles.extent) == ROWS // SIZE


def test_steps_that_are_written_out_read_a_panel_that_is_made_before():
    func = lowered(product("tiles", steps=1))
    assert panels(func) == [DEPTH * COLUMNS]
    assert not collect(func.body, tirx.IfThenElse)
    (made,) = [one for one in collect(func.body, tirx.For) if len(short(one)) and one.kind == 0]
    assert int(made.extent) * COLUMNS == DEPTH * COLUMNS


def test_before_tasks_all_panels_are_made_by_all_cores():
    func = lowered(product("panels"))
    assert panels(func) == [3 * DEPTH * COLUMNS]
    parallel = [one for one in collect(func.body, tirx.For) if one.kind == tirx.ForKind.PARALLEL]
    assert [bool(short(one)) for one in parallel] == [True, False]
    assert not collect(func.body, tirx.IfThenElse)


def test_no_mark_is_left():
    loops = collect(lowered(product("tiles")).body, tirx.For)
    assert not any(WIDENED in (loop.annotations or {}) for loop in loops)


def test_float32_stays_as_it_is():
    assert not panels(lowered(product("tiles", "float32")))


def layer(rows: int, columns: int = 100) -> tvm.IRModule:
    """A product with a constant weight of 16 bits."""
    x = te.placeholder((rows, 64), name="x")
    w = te.placeholder((64, columns), name="w", dtype="float16")
    k = te.reduce_axis((0, 64))
    value = lambda i, j: te.sum(x[i, k] * w[k, j].astype("float32"), axis=k)  # noqa: E731
    return program([x, w], te.compute((rows, columns), value, name="out"), free=(1,))


def test_what_might_lie_beyond_a_buffer_is_loaded_as_before():
    """Of 40 columns in panels of 16, nothing reads the last 8 of the last panel."""
    sch = tvm.s_tir.Schedule(layer(ROWS, 40), debug_mask="none")
    block = sch.get_sblock("out")
    tiles, columns, depth = sch.get_loops(block)
    panels_, lanes = sch.split(columns, [None, COLUMNS])
    sch.reorder(panels_, tiles, depth, lanes)
    sch.annotate(tiles, WIDENED, True)
    assert not panels(lowered(sch))
    x, w, out = built.kernel_outputs(sch.mod)
    np.testing.assert_allclose(out, x @ w.astype(np.float32), rtol=1e-4, atol=1e-4)
