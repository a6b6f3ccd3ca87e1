"""Stages that choose by the place in a row, as a concatenation does: each part has vectors."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import built
from helpers.programs import program
from tvm import te

from ansor_deploy._tvm import tvm, tvm_target
from ansor_deploy.codegen.kernels.lowering import PIPELINE, compiled
from ansor_deploy.marks.partition import PARTITION
from ansor_deploy.space.loops import parallel_map

TARGET = replace(built.with_vectors(32, 16), cores=1)
SHAPE = (6, 5, 64)


def stage(condition):
    """A schedule of a stage that adds 2 where a condition on its indices holds, and else 3."""
    x = te.placeholder(SHAPE, "float32", name="x")

    def element(*at):
        return te.if_then_else(condition(*at), x(*at) + 2.0, x(*at) + 3.0)

    sch = tvm.s_tir.Schedule(program([x], te.compute(SHAPE, element, name="y")), debug_mask="none")
    parallel_map(sch, sch.get_sblock("y"), TARGET)
    return sch


@pytest.mark.parametrize(
    ("condition", "parted"),
    [
        (lambda _i, _j, k: k < 16, True),
        (lambda _i, _j, k: k >= 16, True),
        (lambda _i, _j, k: k < 21, False),  # a vector would have elements of both parts
        (lambda _i, _j, k: k > 16, False),
        (lambda _i, j, _k: j < 3, False),
        (lambda _i, j, k: j * 64 + k < 100, False),  # where it ends depends on the row
    ],
)
def test_a_row_is_parted_where_its_own_place_decides(condition, parted):
    sch = stage(condition)
    loops = [sch.get(one) for one in sch.get_loops("y")[-2:]]
    assert all((PARTITION in one.annotations) == parted for one in loops)


@pytest.mark.parametrize("end", [8, 16])
def test_each_part_is_computed_by_vectors(end):
    mod = stage(lambda _i, _j, k: k < end).mod
    library = tvm.compile(mod, target=tvm_target(TARGET), tir_pipeline=PIPELINE)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    y = tvm.runtime.tensor(np.zeros(SHAPE, np.float32))
    library["main"](tvm.runtime.tensor(x), y)
    np.testing.assert_array_equal(y.numpy(), np.where(np.arange(64) < end, x + 2, x + 3))
    assert "vaddps" in compiled({"main": mod["main"]}, TARGET).inspect_source("asm")
