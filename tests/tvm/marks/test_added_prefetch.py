"""A tile fetches what its results are added to and where they go, and computes the same."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import built
from helpers.programs import program
from tvm import te, topi

from ansor_deploy._tvm import collect, tirx, tvm
from ansor_deploy.codegen.kernels.lowering import _cut_off
from ansor_deploy.marks.added_prefetch import ADDED
from ansor_deploy.space.default_schedule import default_schedule

TARGET = replace(built.with_vectors(64, 32), cores=1)
ROWS, DEPTH, COLUMNS = 37, 16, 48


def summed(other: tuple[int, ...], rows: int = ROWS) -> tvm.s_tir.Schedule:
    """The default schedule of a product and the sum of it and another tensor."""
    shapes = {"x": (rows, DEPTH), "w": (DEPTH, COLUMNS), "other": other}
    x, w, other = (te.placeholder(shape, name=name) for name, shape in shapes.items())
    mod = program([x, w, other], topi.add(topi.nn.matmul(x, w), other))
    return default_schedule(mod, TARGET)


def fetched(sch: tvm.s_tir.Schedule) -> list[str]:
    """The names of the buffers that the lowered program fetches of."""
    func = _cut_off(sch.mod)["main"]
    calls = [one for one in collect(func.body, tvm.ir.Call) if "llvm_intrin" in str(one.op)]
    return [load.source.name for call in calls for load in collect(call, tvm.ir.TensorLoad)]


def test_a_residual_and_the_result_are_fetched():
    names = set(fetched(summed((ROWS, COLUMNS))))
    assert len(names) == 2


def test_a_bias_is_not():
    assert not fetched(summed((COLUMNS,)))


@pytest.mark.parametrize("rows", [ROWS, 1])
def test_it_computes_the_same(rows):
    x, w, other, out = built.kernel_outputs(summed((rows, COLUMNS), rows).mod)
    np.testing.assert_allclose(out, x @ w + other, rtol=1e-5, atol=1e-5)


def test_no_mark_is_left():
    func = _cut_off(summed((ROWS, COLUMNS)).mod)["main"]
    loops = collect(func.body, tirx.For)
    assert not any(ADDED in (loop.annotations or {}) for loop in loops)
