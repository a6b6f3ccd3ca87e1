"""A kernel that takes less than to wake a core runs on one, whatever its schedule says."""

import numpy as np
import pytest
import tvm
from helpers import built, programs
from helpers.recurrence import recurrence
from tvm import te

from ansor_deploy._tvm import collect, tirx, tvm_target
from ansor_deploy.codegen.kernels.lowering import PIPELINE
from ansor_deploy.codegen.passes.small_loops import small_loops
from ansor_deploy.space.default_schedule import default_schedule

LAUNCH = "TVMBackendParallelLaunch"


def doubled(rows: int, columns: int = 64) -> tvm.IRModule:
    """Twice as much of everything, its rows shared among the cores."""
    x = te.placeholder((rows, columns), name="x")
    out = te.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="out")
    func = te.create_prim_func([x, out]).with_attr("global_symbol", "main")
    sch = tvm.s_tir.Schedule(func)
    row, column = sch.get_loops(sch.get_sblock("out"))
    sch.parallel(row)
    sch.vectorize(sch.split(column, [None, 16])[1])
    return sch.mod


def generated(mod: tvm.IRModule) -> str:
    return tvm.compile(mod, tvm_target(built.HOST), tir_pipeline=PIPELINE).mod.inspect_source("ll")


@pytest.mark.parametrize(("rows", "shared"), [(4, False), (256, True)])
def test_cores_share_what_takes_longer_to_fetch_than_to_wake_one(rows, shared):
    mod = doubled(rows)
    assert (LAUNCH in generated(mod)) == shared
    x, out = built.kernel_outputs(mod)
    np.testing.assert_array_equal(out, x * np.float32(2))


@pytest.mark.parametrize(("rows", "kind"), [(4, "SERIAL"), (4096, "PARALLEL")])
def test_loops_in_one_another_are_one_nest(rows, kind):
    sch = tvm.s_tir.Schedule(doubled(rows))
    row, column, _ = sch.get_loops(sch.get_sblock("out"))
    sch.parallel(column)
    func = small_loops(sch.mod)["main"]
    outer, inner = (sch.get(loop).loop_var.name for loop in (row, column))
    kinds = {loop.loop_var.name: loop.kind for loop in collect(func.body, tirx.For)}
    assert kinds[outer] == kinds[inner] == getattr(tirx.ForKind, kind)


@pytest.mark.parametrize(("size", "shared"), [(16, False), (256, True)])
def test_a_product_is_shared_for_what_it_multiplies(size, shared):
    sch = default_schedule(programs.matmul(size, size, size), built.with_vectors(32))
    func = small_loops(sch.mod)["main"]
    kinds = {loop.kind for loop in collect(func.body, tirx.For)}
    assert (tirx.ForKind.PARALLEL in kinds) == shared


@pytest.mark.parametrize(("units", "shared"), [(8, False), (128, True)])
def test_two_directions_are_shared_for_what_they_compute(units, shared):
    mod = programs.program(*recurrence(units, directions=2))
    func = small_loops(default_schedule(mod, built.with_vectors(32)).mod)["main"]
    loops = [loop for loop in collect(func.body, tirx.For) if int(loop.extent) == 2]
    assert (tirx.ForKind.PARALLEL in {loop.kind for loop in loops}) == shared


def test_what_takes_nobody_knows_how_long_is_shared():
    extent = tirx.Var("n", "int32")
    body = tirx.Evaluate(tirx.call_packed("anything", extent))
    loop = tirx.For(tirx.Var("i", "int32"), 0, 4, tirx.ForKind.PARALLEL, body)
    func = tirx.PrimFunc([extent], loop)
    assert small_loops(tvm.IRModule({"main": func}))["main"].body.kind == loop.kind
