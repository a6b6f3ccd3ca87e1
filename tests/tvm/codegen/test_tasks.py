"""Tiles that an extent cuts short are tasks as the others are, whatever loops they are in."""

import numpy as np
import pytest
import tvm
from helpers import built
from tvm import te

from ansor_deploy._tvm import collect, tirx
from ansor_deploy.codegen.kernels.lowering import _cut_off
from ansor_deploy.marks.partition import partitioned


def tiled(rows: int, columns: int, tile: tuple[int, int]) -> tvm.IRModule:
    """Products of all pairs, by tiles, in a parallel loop over either axis's."""
    x, y = te.placeholder((rows,), name="x"), te.placeholder((columns,), name="y")
    out = te.compute((rows, columns), lambda i, j: x[i] * y[j], name="out")
    func = te.create_prim_func([x, y, out]).with_attr("global_symbol", "main")
    sch = tvm.s_tir.Schedule(func)
    loops = sch.get_loops(sch.get_sblock("out"))
    pairs = [sch.split(loop, [None, size]) for loop, size in zip(loops, tile, strict=True)]
    outer, inner = zip(*pairs, strict=True)
    sch.reorder(*outer, *inner)
    for loop, whole, size in zip(outer, (rows, columns), tile, strict=True):
        sch.parallel(loop)
        if whole % size:
            partitioned(sch, loop)
    return sch.mod


@pytest.mark.parametrize(
    ("tile", "tasks"), [((3, 4), 12), ((2, 5), 15), ((3, 5), 12), ((9, 5), 6), ((3, 12), 4)]
)
def test_all_tiles_are_tasks_of_one_loop(tile, tasks):
    mod = tiled(10, 12, tile)
    loops = collect(_cut_off(mod)["main"].body, tirx.For)
    assert [int(one.extent) for one in loops if one.kind == tirx.ForKind.PARALLEL] == [tasks]
    x, y, out = built.kernel_outputs(mod)
    np.testing.assert_array_equal(out, x[:, None] * y)
