"""Exponentials of differences of bytes: arithmetic that asks for no ends, where there are none."""

import numpy as np
import pytest
from helpers import built
from tvm import te

from ansor_deploy._tvm import collect, op_name, tirx, tvm
from ansor_deploy.codegen.passes.bounded_powers import bounded_powers


def powers(kind, scale, dtype="int32"):
    """Powers of the differences between bytes and the first of them."""
    x = te.placeholder((256,), kind, name="x")
    far = lambda i: x[i].astype(dtype) - x[0].astype(dtype)  # noqa: E731
    made = te.compute(x.shape, lambda i: te.exp(far(i).astype("float32") * tirx.const(scale)))
    return tvm.IRModule({"main": te.create_prim_func([x, made])})


def asks(mod):
    """Whether an exponential is left as such."""
    made = bounded_powers(mod)["main"]
    return "tirx.exp" in {op_name(call) for call in collect(made.body, tvm.ir.Call)}


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_differences_of_bytes_are_within_the_ends(kind):
    assert not asks(powers(kind, 0.3))
    assert asks(powers(kind, 0.4))
    assert asks(powers("int32", 0.3))
    assert asks(powers("float32", 0.3, "float32"))


@pytest.mark.parametrize("scale", [0.3, 0.02, 1e-6])
def test_powers_are_right_however_far_bytes_are_apart(scale):
    x, have = built.kernel_outputs(powers("uint8", scale))
    far = x.astype(np.int32) - int(x[0])
    exact = np.exp((far.astype(np.float32) * np.float32(scale)).astype(np.float64))
    np.testing.assert_allclose(have, exact, rtol=5e-7)
