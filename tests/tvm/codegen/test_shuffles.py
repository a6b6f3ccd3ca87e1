"""Lanes that copy elements of a few runs read whole vectors, and put them in order."""

import numpy as np
import pytest
import tvm
from helpers import built
from tvm import te

from ansor_deploy._tvm import collect, tirx
from ansor_deploy.codegen.kernels.lowering import _cut_off, flattening
from ansor_deploy.codegen.passes.shuffles import shuffles
from ansor_deploy.marks.partition import partitioned

ROWS, PART = 5, 58


def copied(name: str, kind: str = "float32") -> tvm.IRModule:
    """A program that copies rows of two parts, 16 columns at a time; the last ones are fewer."""
    x, y = (te.placeholder((ROWS, 2 * PART), kind, name) for name in "xy")
    read = {
        "groups in turns": lambda i, j: x[i, j % 2 * PART + j // 2],
        "two tensors in turns": lambda i, j: tirx.if_then_else(
            j % 2 < 1, x[i, j // 2], y[i, PART + j // 2]
        ),
        "pairs swapped": lambda i, j: x[i, j // 2 * 2 + (j + 1) % 2],
        "each twice": lambda i, j: x[i, j // 2],
        "as it is": lambda i, j: x[i, j],
        "one of two": lambda i, j: x[i, j % PART * 2],
    }[name]
    out = te.compute((ROWS, 2 * PART), read, name="out")
    given = [x, y, out] if name.startswith("two") else [x, out]
    func = te.create_prim_func(given).with_attr("global_symbol", "main")
    sch = tvm.s_tir.Schedule(func)
    _, column = sch.get_loops(sch.get_sblock("out"))
    over, lane = sch.split(column, [None, 16])
    partitioned(sch, over)
    partitioned(sch, lane)
    sch.vectorize(lane)
    return sch.mod


def shuffled(mod: tvm.IRModule) -> list[int]:
    """How many loads each shuffle takes."""
    passes = [_cut_off, *flattening(), tvm.s_tir.transform.LoopPartition(), shuffles]
    func = tvm.transform.Sequential(passes)(mod)["main"]
    return [len(one.vectors) for one in collect(func.body, tirx.Shuffle)]


@pytest.mark.parametrize("kind", ["float32", "uint8"])
@pytest.mark.parametrize(
    ("name", "loads"),
    [("groups in turns", 2), ("two tensors in turns", 2), ("pairs swapped", 1), ("each twice", 2)],
)
def test_a_vector_takes_few_loads(name, loads, kind):
    mod = copied(name, kind)
    assert set(shuffled(mod)) == {loads}
    *given, out = built.kernel_outputs(mod)
    column = np.arange(2 * PART)
    expected = {
        "groups in turns": lambda x: x[:, column % 2 * PART + column // 2],
        "two tensors in turns": lambda x, y: np.where(
            column % 2 < 1, x[:, column // 2], y[:, PART + column // 2]
        ),
        "pairs swapped": lambda x: x[:, column ^ 1],
        "each twice": lambda x: x[:, column // 2],
    }[name](*given)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("name", ["as it is", "one of two"])
def test_what_is_in_equal_steps_stays(name):
    assert shuffled(copied(name)) == []
