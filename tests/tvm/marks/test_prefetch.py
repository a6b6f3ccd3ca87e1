"""A marked loop over tiles fetches all of the next panel, and nothing else changes."""

import itertools

import numpy as np
import pytest
import tvm
from helpers import built
from tvm import te
from tvm.script import tirx as T  # noqa: N812 - as TVMScript is written

from ansor_deploy._tvm import collect, structural_map, tirx
from ansor_deploy.codegen.kernels.lowering import _cut_off
from ansor_deploy.marks.matrix_tiles import MATRIX
from ansor_deploy.marks.prefetch import FEW_TILES, LINE, PREFETCH, PREFETCH_ROWS, prefetch

ROWS, DEPTH = 12, 24


def product(columns: int, size: int, step: int) -> tvm.s_tir.Schedule:
    """Tiles of so many rows and a step of the sum, over packed panels of so many columns."""
    x = te.placeholder((ROWS, DEPTH), name="x")
    packed = te.placeholder((3, DEPTH, columns), name="packed")
    k = te.reduce_axis((0, DEPTH))
    out = te.compute(
        (3, ROWS, columns), lambda p, i, j: te.sum(x[i, k] * packed[p, k, j], axis=k), name="out"
    )
    func = te.create_prim_func([x, packed, out]).with_attr("global_symbol", "main")
    sch = tvm.s_tir.Schedule(func, debug_mask="none")
    block = sch.get_sblock("out")
    panels, rows, lanes, depth = sch.get_loops(block)
    tiles, row = sch.split(rows, [None, size])
    steps, written = sch.split(depth, [None, step])
    sch.reorder(panels, tiles, steps, written, row, lanes)
    sch.parallel(panels)
    for loop in (written, row):
        sch.unroll(loop)
    sch.vectorize(lanes)
    sch.annotate(tiles, PREFETCH, DEPTH * columns)
    sch.decompose_reduction(block, steps)
    for loop in sch.get_loops(sch.get_sblock("out_init"))[-2:]:
        (sch.unroll if int(sch.get(loop).extent) == size else sch.vectorize)(loop)
    return sch


def matrices() -> tvm.s_tir.Schedule:
    """Tiles of rows and columns of bytes, in matrices of sixteen times four steps."""
    x = te.placeholder((ROWS, 192), "uint8", name="x")
    packed = te.placeholder((3, 48, 32, 4), "int8", name="packed")
    k = te.reduce_axis((0, 192))

    def added(p: object, i: object, j: object) -> object:
        weight = packed[p, k // 4, j, k % 4]
        return te.sum(x[i, k].astype("int32") * weight.astype("int32"), axis=k)

    out = te.compute((3, ROWS, 32), added, name="out")
    func = te.create_prim_func([x, packed, out]).with_attr("global_symbol", "main")
    sch = tvm.s_tir.Schedule(func, debug_mask="none")
    block = sch.get_sblock("out")
    panels, rows, columns, depth = sch.get_loops(block)
    tiles, row = sch.split(rows, [None, 4])
    steps, some, four = sch.split(depth, [None, 16, 4])
    sch.reorder(panels, tiles, steps, row, columns, some, four)
    sch.parallel(panels)
    sch.annotate(some, MATRIX, True)
    sch.annotate(tiles, PREFETCH, 192 * 32)
    sch.decompose_reduction(block, steps)
    return sch


@T.prim_func
def counted(
    n: T.Buffer((1,), "int64"), x: T.Buffer((1536,)), w: T.Buffer((1152,)), y: T.Buffer((3072,))
):
    """Tiles of four rows by 16 columns, and rows alone where one is left; a run counts the rows."""
    for p in range(3):
        for t in T.serial(16, annotations={"ansor.prefetch": 384}):
            if T.Cast("int64", t * 4) < n[0]:
                if n[0] <= T.Cast("int64", t * 4 + 1):
                    for k in range(24):
                        for j in T.vectorized(16):
                            y[p * 1024 + t * 64 + j] += x[t * 96 + k] * w[p * 384 + k * 16 + j]
                else:
                    for s in range(24):
                        for r in T.unroll(4):
                            for c in T.vectorized(16):
                                y[p * 1024 + t * 64 + r * 16 + c] += (
                                    x[t * 96 + r * 24 + s] * w[p * 384 + s * 16 + c]
                                )


def fetched(func) -> list:
    """The indices that are fetched."""
    calls = [one for one in collect(func.body, tvm.ir.Call) if "llvm_intrin" in str(one.op)]
    return [load.indices[0] for call in calls for load in collect(call, tvm.ir.TensorLoad)]


def number(index, values: dict[str, int]) -> int:
    """An index where its variables have these values."""

    def value(var: object) -> object:
        return tirx.const(values[var.name], var.ty.dtype)

    return int(tvm.sym.Analyzer().simplify(structural_map(index, (tirx.Var, value))))


def loops(func, index) -> list:
    """The loops with variables in an index."""
    names = {var.name for var in collect(index, tirx.Var)}
    return [one for one in collect(func.body, tirx.For) if one.loop_var.name in names]


def lines_by_the_second(func, item: int = 4) -> set[int]:
    """The lines that the second panel fetches, or the second tile of rows. item: bytes."""
    lines = set()
    for index in fetched(func):
        around = loops(func, index)
        for values in itertools.product(*(range(int(one.extent)) for one in around)):
            at = {one.loop_var.name: n for one, n in zip(around, values, strict=True)}
            if at[around[-1].loop_var.name] == 1:  # the outermost
                lines.add(eval(str(index), {}, at) * item // LINE)  # noqa: S307 - plain arithmetic
    return lines


@pytest.mark.parametrize(("columns", "size", "step"), [(16, 4, 1), (48, 6, 4), (8, 3, 2)])
def test_the_tiles_of_a_panel_fetch_every_line_of_the_next(columns, size, step):
    lines = lines_by_the_second(_cut_off(product(columns, size, step).mod)["main"])
    panel = DEPTH * columns * 4 // LINE
    assert set(range(2 * panel, 3 * panel)) <= lines
    assert max(lines) < 3 * panel + panel // 4


def test_few_tiles_fetch_the_next_panel_where_a_run_counts_the_rows():
    """Whole tiles do so, and not the rows that are left."""
    func = prefetch(counted)
    (whole,) = (one for one in collect(func.body, tirx.For) if one.loop_var.name == "s")
    assert len(fetched(func)) == len(fetched(func.with_body(whole))) > 0
    places = itertools.product(fetched(func), range(FEW_TILES), range(24))
    lines = {number(index, {"p": 1, "t": t, "s": s}) * 4 // LINE for index, t, s in places}
    assert set(range(48, 72)) <= lines


def test_matrices_fetch_every_line_of_the_next_panel():
    lines = lines_by_the_second(_cut_off(matrices().mod)["main"], item=1)
    panel = 192 * 32 // LINE
    assert set(range(2 * panel, 3 * panel)) <= lines
    assert max(lines) < 3 * panel + panel // 4


@pytest.mark.parametrize(("size", "step"), [(4, 4), (6, 2)])
def test_a_tile_of_rows_fetches_every_line_of_the_next(size, step):
    sch = product(16, size, step)
    tiles = sch.get_loops(sch.get_sblock("out_update"))[1]
    sch.unannotate(tiles, PREFETCH)
    sch.annotate(tiles, PREFETCH_ROWS, size * DEPTH)
    lines = lines_by_the_second(_cut_off(sch.mod)["main"])
    rows = size * DEPTH * 4 // LINE
    assert set(range(2 * rows, 3 * rows)) <= lines
    x, packed, out = built.kernel_outputs(sch.mod)
    np.testing.assert_allclose(out, x @ packed, rtol=1e-5, atol=1e-5)


def test_it_computes_the_same():
    x, packed, out = built.kernel_outputs(product(16, 4, 4).mod)
    np.testing.assert_allclose(out, x @ packed, rtol=1e-5, atol=1e-5)


def test_a_panel_that_no_tile_reads_is_not_fetched():
    sch = product(16, 4, 4)
    loop = sch.get_loops(sch.get_sblock("out_update"))[1]
    sch.unannotate(loop, PREFETCH)
    sch.annotate(loop, PREFETCH, 2**30)
    assert not fetched(_cut_off(sch.mod)["main"])
