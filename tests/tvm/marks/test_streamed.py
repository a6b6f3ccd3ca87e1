"""Short weights that one row uses are fetched ahead, every line of them, and no others."""

import itertools

import numpy as np
import pytest
from helpers.built import HOST, assert_like_oracle, imported
from helpers.graphs import model, node, randn
from helpers.programs import matmul

from ansor_deploy._tvm import collect, tirx, tvm
from ansor_deploy.codegen.kernels.lowering import _cut_off
from ansor_deploy.marks.prefetch import LINE
from ansor_deploy.marks.streamed import AHEAD, STREAMED, streaming
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space.default_schedule import default_schedule

DEPTH, COLUMNS = 512, 256


def product(rows: int, kind: type = np.float16):
    """Of weights that numbers of a type hold."""
    weight = randn(0, DEPTH, COLUMNS).astype(kind)
    nodes = [node("Cast", "w", "v", to=1), node("MatMul", "x v", "y")]
    return model(nodes, {"x": (rows, DEPTH)}, constants={"w": weight})


def scheduled(proto):
    (task,) = extract(imported(proto).mod, HOST).values()
    return default_schedule(task.mod, HOST).mod


def is_marked(proto) -> bool:
    loops = collect(scheduled(proto)["main"].body, tirx.For)
    return any(STREAMED in (one.annotations or {}) for one in loops)


def lines(func) -> set[int]:
    """Those that are fetched of weights of 16 bits."""
    calls = [one for one in collect(func.body, tvm.ir.Call) if "llvm_intrin" in str(one.op)]
    found = set()
    for (index,) in (one.indices for call in calls for one in collect(call, tvm.ir.TensorLoad)):
        names = {var.name for var in collect(index, tirx.Var)}
        around = {o.loop_var.name: o for o in collect(func.body, tirx.For)}
        ranges = {name: range(int(around[name].extent)) for name in names}
        for values in itertools.product(*ranges.values()):
            at = eval(str(index), {}, dict(zip(ranges, values, strict=True)))  # noqa: S307
            found.add(at * 2 // LINE)
    return found


def test_every_line_is_fetched_and_no_other():
    first, count = AHEAD // LINE, DEPTH * COLUMNS * 2 // LINE
    assert lines(_cut_off(scheduled(product(1)))["main"]) == set(range(first, first + count))


@pytest.mark.parametrize(("rows", "kind"), [(1, np.float32), (3, np.float16)])
def test_others_are_not(rows, kind):
    assert is_marked(product(1))
    assert not is_marked(product(rows, kind))


def test_it_computes_the_same():
    assert_like_oracle(product(1))


def test_a_loop_without_weights_along_lanes_is_left_as_it_was():
    sch = tvm.s_tir.Schedule(matmul(4, 8, 16), debug_mask="none")
    loop = sch.get_loops(sch.get_sblock("T_matmul"))[0]
    streaming(sch, loop)
    func = _cut_off(sch.mod)["main"]
    assert not lines(func)
    assert not any(STREAMED in (one.annotations or {}) for one in collect(func.body, tirx.For))
