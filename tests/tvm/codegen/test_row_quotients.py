"""Rows that are divided by their sums: exponentials once a row, all else as it stands."""

import numpy as np
import pytest
from helpers import built
from helpers.graphs import model, node
from tvm import te

from ansor_deploy._tvm import collect, tirx, tvm
from ansor_deploy.codegen.passes.row_quotients import row_quotients


def normalised(function) -> tvm.IRModule:
    """Rows of a function of x, divided by their sums."""
    x = te.placeholder((4, 24), name="x")
    made = te.compute(x.shape, lambda i, j: function(x[i, j]), name="made")
    along = te.reduce_axis((0, 24), name="along")
    total = te.compute((4,), lambda i: te.sum(made[i, along], axis=along), name="total")
    out = te.compute(x.shape, lambda i, j: made[i, j] / total[i], name="out")
    return tvm.IRModule({"main": te.create_prim_func([x, out])})


@pytest.mark.parametrize(("function", "divided"), [(te.exp, False), (lambda x: x * x, True)])
def test_exponentials_are_multiplied_and_others_divided(function, divided):
    func = row_quotients(normalised(function))["main"]
    (quotient,) = collect(func.body, tirx.Div)
    assert isinstance(quotient.a, tirx.FloatImm) != divided


@pytest.mark.parametrize("columns", [5, 16, 49, 100])
def test_rows_of_a_softmax_are_right_whatever_is_in_them(columns):
    x = np.linspace(-90, 90, 7 * columns, dtype=np.float32).reshape(7, columns)
    x[1, 2:], x[2], x[3, 1], x[4, 0] = -np.inf, -200, np.nan, 1e30
    proto = model([node("Softmax", "x", "y")], {"x": x.shape})
    (have,) = built.run(proto, {"x": x})
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        have, exact / exact.sum(axis=1, keepdims=True), rtol=1e-6, atol=1e-37
    )


def test_a_row_without_its_nans_is_made_in_vectors():
    nodes = [node("Softmax", "x", "s"), node("IsNaN", "s", "n"), node("Where", "n zero s", "y")]
    proto = model(nodes, {"x": (2, 32)}, constants={"zero": np.float32(0)})
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    x[1] = -np.inf
    (have,) = built.run(proto, {"x": x})
    assert (have[1] == 0).all()
    np.testing.assert_allclose(have[0].sum(), 1, rtol=1e-6)
