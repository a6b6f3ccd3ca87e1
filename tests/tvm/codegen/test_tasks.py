"""Tiles that an extent cuts short are tasks as the others are, whatever loops they are in."""

import numpy as np
import pytest
import tvm
from helpers import built
from tvm import te

from ansor_deploy._tvm import at_step, collect, structural_map, tirx
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


def first_element(func: tvm.tirx.PrimFunc, task: int) -> int:
    """The flat index of the first element that a task of a function's parallel loop stores."""
    loop = next(one for one in collect(func.body, tirx.For) if one.kind == tirx.ForKind.PARALLEL)
    alone = tvm.IRModule({"main": func.with_body(at_step(loop.body, loop, task))})
    body = tvm.s_tir.transform.StmtSimplify()(alone)["main"].body
    (store,) = collect(body, tirx.BufferStore)
    (index,) = store.indices
    for inner in collect(body, tirx.For):
        index = at_step(index, inner, 0)
    return int(tvm.sym.Analyzer().simplify(index))


@pytest.mark.parametrize("tile", [(3, 4), (2, 5), (3, 5), (9, 5)])
def test_neighbours_in_memory_are_neighbours_among_tasks(tile):
    """Whether an extent cuts a tile short makes no difference to its number."""
    func = _cut_off(tiled(10, 12, tile))["main"]
    rows, columns = range(0, 10, tile[0]), range(0, 12, tile[1])
    places = [12 * row + column for row in rows for column in columns]
    assert [first_element(func, task) for task in range(len(places))] == places


def test_what_a_loop_asks_before_the_next_one_each_task_asks():
    """As where a run decides how many rows count."""
    mod = tiled(10, 12, (3, 5))

    def asking(loop: tirx.For) -> tirx.For:
        if loop.kind != tirx.ForKind.PARALLEL or len(collect(loop.body, tirx.For)) < 3:
            return loop
        asked = tirx.IfThenElse(loop.loop_var < 2, loop.body, None)
        return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, asked, None, None)

    func = mod["main"]
    body = structural_map(func.body, (tirx.For, asking))
    x, y, out = built.kernel_outputs(tvm.IRModule({"main": func.with_body(body)}))
    np.testing.assert_array_equal(out[:6], x[:6, None] * y)
