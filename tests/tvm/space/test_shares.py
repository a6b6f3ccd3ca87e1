"""Few results of long reductions: every core sums up a share, and all shares are alike."""

from dataclasses import replace
from functools import cache
from math import ceil, prod

import numpy as np
import pytest
import tvm
from helpers import built
from helpers.programs import depthwise, matmul, program, reduce
from tvm import te, tirx

from ansor_deploy._tvm import collect
from ansor_deploy.codegen.kernels.lowering import _cut_off
from ansor_deploy.space.block_view import BlockView, blocks
from ansor_deploy.space.cores import busy, worth_cores
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Guess
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.tile_sizes import register_tiles
from ansor_deploy.space.trace import dump, replay


def norm(rows: int, columns: int) -> tvm.IRModule:
    """The Euclidean norm of a matrix, as the paper has it."""
    x = te.placeholder((1, rows, columns), name="x")
    i, j = te.reduce_axis((0, rows)), te.reduce_axis((0, columns))
    squares = te.compute((1,), lambda b: te.sum(x[b, i, j] * x[b, i, j], axis=[i, j]), "squares")
    return program([x], te.compute((1,), lambda b: te.sqrt(squares[b])))


LONG = {
    "norm": lambda: norm(4096, 1024),
    "norm of few rows": lambda: norm(3, 400_000),
    "two long rows": lambda: reduce("sum", 2, 400_003, axis=1),
    "contraction": lambda: matmul(8, 4096, 8),
    "one row": lambda: matmul(1, 25088, 64),
    "few columns": lambda: reduce("sum", 400_003, 8, axis=0),
}
SHORT = {
    "norm": lambda: norm(301, 512),
    "norm of few rows": lambda: norm(3, 70_000),
    "rows of a prime": lambda: reduce("max", 3, 70_001, axis=1),
    "contraction": lambda: matmul(8, 4099, 8),
    "one row": lambda: matmul(1, 8192, 24),
    "few columns": lambda: reduce("sum", 40_003, 5, axis=0),
}


def machine(cores: int):
    return replace(built.with_vectors(64, 32), cores=cores)


def iterations(view: BlockView) -> int:
    return prod(view.spatial + view.reduced)


def side_by_side(mod: tvm.IRModule) -> int:
    """Iterations of the longest parallel loop."""
    loops = collect(mod["main"].body, tirx.For)
    shared = [int(one.extent) for one in loops if one.kind == tirx.ForKind.PARALLEL]
    return max(shared, default=1)


@pytest.mark.parametrize("name", LONG)
def test_the_busiest_of_any_number_of_cores_has_little_more_to_do_than_the_others(name):
    mod = LONG[name]()
    whole = built.reduction(mod)
    for cores in range(1, 25):
        target = machine(cores)
        sch = default_schedule(mod, target)
        hottest = max((BlockView(sch, rv) for rv in blocks(sch)), key=iterations)
        tasks = side_by_side(sch.mod)
        busiest = iterations(hottest) / tasks * ceil(tasks / cores)
        assert tasks > 1 or cores == 1
        assert busiest <= 1.15 * iterations(whole) / worth_cores(whole, target), cores


@cache
def unscheduled(name):
    return built.loop_outputs(SHORT[name]())


@pytest.mark.parametrize("cores", [3, 20])
@pytest.mark.parametrize("name", SHORT)
def test_the_sum_of_uneven_shares_is_right(name, cores):
    mod, target = SHORT[name](), machine(cores)
    sch = default_schedule(mod, target)
    assert side_by_side(_cut_off(sch.mod)) > 1
    have = built.loop_outputs(sch.mod)
    for one, other in zip(have, unscheduled(name), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)


@pytest.mark.parametrize("name", SHORT)
def test_its_trace_replays(name):
    mod, target = SHORT[name](), machine(7)
    sch = default_schedule(mod, target)
    assert replay(mod, dump(sch.trace)).mod.script() == sch.mod.script()


def test_one_core_takes_a_contraction_whole():
    derivation = derive(LONG["one row"](), machine(1), shipped_rules("llvm"))
    assert "factored-tile" not in str(derivation.sketches[0])
    assert derivation.sketches[0].program(Guess())


@pytest.mark.parametrize(("rows", "columns"), [(49, 160), (197, 192), (49, 1001), (16, 1000)])
def test_tiles_that_divide_no_extent_leave_no_core_idle(rows, columns):
    mod = matmul(rows, 960, columns)
    for cores in (1, 2, 4, 8, 12, 20):
        tasks = side_by_side(_cut_off(default_schedule(mod, machine(cores)).mod))
        assert busy(tasks, cores) >= 0.8, cores


@pytest.mark.parametrize(("side", "channels", "size"), [(56, 40, 7), (112, 16, 3), (14, 672, 5)])
def test_strips_of_rows_leave_no_core_idle(side, channels, size):
    mod = depthwise(side, channels, size)
    for cores in (1, 2, 4, 8, 12, 20):
        tasks = side_by_side(_cut_off(default_schedule(mod, machine(cores)).mod))
        assert busy(tasks, cores) >= 0.8, cores


def test_a_small_product_is_no_work_for_many_cores():
    view = built.reduction(matmul(16, 32, 32))
    assert register_tiles(view, machine(20), [1] * 3) == register_tiles(view, machine(1), [1] * 3)
