"""Functions on vectors beside the C library's, over all of float32, and in whole models."""

import math

import numpy as np
import pytest
from helpers import built
from helpers.built import HOST
from helpers.graphs import model, node
from tvm import te

from ansor_deploy._tvm import collect, op_name, tirx, tvm
from ansor_deploy.codegen.kernels.lowering import code_generation, compiled
from ansor_deploy.codegen.passes.periodic import periodic
from ansor_deploy.codegen.passes.vector_math import ERF_ONE, TANH_ONE, on_vectors

ULP, LEAST = 2.0**-23, 2.0**-125
# Every 2^13th float32, both signs, NaN and infinities among them; and where branches lie.
EVERY = np.arange(0, 1 << 32, 1 << 13, dtype=np.uint64).astype(np.uint32).view(np.float32)
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 88.72283, 88.73, -86.9, -87.4, -104.0, 1e-40]
NEAR = [TANH_ONE, ERF_ONE, math.sqrt(0.5), math.sqrt(2), 2.0**-126]
DENSE = np.linspace(-12, 12, 1 << 16, dtype=np.float32)
INPUTS = np.concatenate([EVERY, np.float32(EDGES), np.float32(NEAR), -np.float32(NEAR), DENSE])

REFERENCES = {
    "Exp": np.exp,
    "Log": np.log,
    "Tanh": np.tanh,
    "Erf": np.vectorize(math.erf),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sin": np.sin,
    "Cos": np.cos,
}


@pytest.fixture(scope="module")
def results():
    """The functions' results on INPUTS, all from one model."""
    nodes = [node(op, "x", op) for op in REFERENCES]
    proto = model(nodes, {"x": INPUTS.shape}, outputs=list(REFERENCES))
    return dict(zip(REFERENCES, built.run(proto, {"x": INPUTS}), strict=True))


@pytest.mark.parametrize("op", REFERENCES)
def test_it_is_right_to_a_few_units_in_the_last_place(results, op):
    with np.errstate(all="ignore"):
        exact = REFERENCES[op](INPUTS.astype(np.float64))
        rounded = exact.astype(np.float32)
        have = results[op].astype(np.float64)
        finite = np.isfinite(rounded)
        np.testing.assert_array_equal(have[~finite], rounded[~finite])
        error = np.abs(have - exact)[finite]
    # What would be no normal number may be 0.
    assert (error <= 4 * ULP * np.abs(exact[finite]) + LEAST).all()


def test_what_tends_to_one_stays_below(results):
    for op in ("Tanh", "Erf", "Sigmoid"):
        assert np.nanmax(np.abs(results[op])) == 1


@pytest.mark.parametrize("function", [tirx.sin, tirx.cos])
def test_what_turns_is_arithmetic_near_zero_and_a_call_far_from_it(function):
    x = tirx.Var("x", "float32x16")
    made = periodic(tirx.Evaluate(function(x))).value
    _, far, near = made.args
    assert op_name(far) == op_name(function(x))
    assert op_name(far) not in {op_name(one) for one in collect(near, tvm.ir.Call)}


def test_what_turns_is_read_where_it_is_asked_for_alone():
    """What a condition leaves out may lie in no memory."""
    (x, y), row = (tirx.decl_buffer((64,), "float32") for _ in range(2)), tirx.Var("row", "int32")
    turned = tirx.sin(tirx.BufferLoad(x, [tirx.Ramp(row * 16 - 16, 1, 16)]))
    inside = tirx.if_then_else(row > 0, turned, tirx.const(0.0, "float32x16"))
    store = tirx.BufferStore(y, inside, [tirx.Ramp(row * 16, 1, 16)])
    made = periodic(store)
    assert isinstance(made, tirx.BufferStore)
    assert op_name(made.value) == "prim.if_then_else"
    assert made.value.args[0].same_as(inside.args[0])


def test_a_divisor_becomes_a_factor_within_a_function_alone():
    x = tirx.Var("x", "float32")
    quotient, whole = x / tirx.const(math.sqrt(2), "float32"), x / tirx.const(49.0, "float32")
    functions = [tirx.erf(quotient), tirx.exp(whole), tirx.erf(x / x), tirx.floor(whole)]
    quotients = [len(collect(on_vectors(tirx.Evaluate(f)), tirx.Div)) for f in functions]
    assert quotients == [1, 0, 2, 1]  # an error function has one of its own


def test_a_function_of_a_quotient_is_as_right_as_that_of_a_number():
    nodes = [node("Div", "x root", "z"), node("Erf", "z", "y")]
    proto = model(nodes, {"x": INPUTS.shape}, constants={"root": np.float32(math.sqrt(2))})
    (have,) = built.run(proto, {"x": INPUTS})
    with np.errstate(invalid="ignore"):
        want = REFERENCES["Erf"](INPUTS.astype(np.float64) / np.float32(math.sqrt(2)))
    np.testing.assert_allclose(have, want, rtol=6 * ULP, atol=LEAST)


@pytest.mark.parametrize(
    ("function", "made"), [(te.erf, "fdiv <64 x float>"), (te.nearbyint, "@llvm.nearbyint.v64f32")]
)
def test_what_tvm_cannot_vectorize_stays_in_whole_vectors(function, made):
    x = te.placeholder((4, 64), name="x")
    func = te.create_prim_func([x, te.compute(x.shape, lambda i, j: function(x[i, j]))])
    sch = tvm.s_tir.Schedule(func)
    sch.vectorize(sch.get_loops(sch.get_child_blocks(sch.get_sblock("root"))[0])[-1])
    with code_generation(HOST):
        text = compiled({"main": sch.mod["main"]}, HOST).inspect_source("ll")
    assert made in text
