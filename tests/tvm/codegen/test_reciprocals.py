"""Divisions by scales: products where a kernel may differ anyway, quotients in all others."""

import numpy as np
import pytest
from helpers import built
from helpers.graphs import model, node
from tvm import te

from ansor_deploy._tvm import collect, tirx, tvm
from ansor_deploy.codegen.passes.reciprocals import reciprocals
from ansor_deploy.codegen.passes.row_quotients import row_quotients


def quantised(value, scale: float) -> tvm.IRModule:
    """A function of x, rounded to steps of a scale."""
    x = te.placeholder((64,), name="x")
    steps = te.compute(x.shape, lambda i: tirx.nearbyint(value(x[i]) / scale).astype("int32"))
    return tvm.IRModule({"main": te.create_prim_func([x, steps])})


@pytest.mark.parametrize(
    ("value", "scale", "divides"),
    [(te.exp, 0.3, False), (te.exp, 1e-40, True), (lambda x: x, 0.3, True)],
)
def test_what_may_differ_is_multiplied(value, scale, divides):
    made = reciprocals(quantised(value, scale))["main"]
    assert bool(collect(made.body, tirx.Div)) == divides


def test_a_row_is_multiplied_once_by_its_sum_and_the_scale():
    x = te.placeholder((4, 24), name="x")
    made = te.compute(x.shape, lambda i, j: te.exp(x[i, j]), name="made")
    along = te.reduce_axis((0, 24), name="along")
    total = te.compute((4,), lambda i: te.sum(made[i, along], axis=along), name="total")
    out = te.compute(x.shape, lambda i, j: tirx.nearbyint(made[i, j] / total[i] / 0.25))
    mod = tvm.IRModule({"main": te.create_prim_func([x, out])})
    func = reciprocals(row_quotients(mod))["main"]
    (of_row,) = [one for one in collect(func.body, tirx.Mul) if isinstance(one.a, tirx.Div)]
    assert float(of_row.b.value) == 4


@pytest.mark.parametrize("columns", [7, 49, 197])
def test_steps_of_a_softmax_are_the_nearest(columns):
    rows = np.random.default_rng(columns).standard_normal((9, columns)).astype(np.float32) * 3
    nodes = [node("Softmax", "x", "s"), node("QuantizeLinear", "s scale zero", "q")]
    nodes.append(node("Cast", "q", "y", to=1))
    constants = {"scale": np.float32(1 / 255), "zero": np.uint8(0)}
    proto = model(nodes, {"x": rows.shape}, constants=constants)
    (have,) = built.run(proto, {"x": rows})
    exact = np.exp(rows.astype(np.float64))
    steps = exact / exact.sum(axis=1, keepdims=True) / np.float32(1 / 255)
    assert (np.abs(have - steps) <= 0.5 + 1e-4).all()
