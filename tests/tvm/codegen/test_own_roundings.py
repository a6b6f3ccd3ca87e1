"""Products and sums of what stands for integers: two roundings, on all processors."""

import numpy as np
import pytest
from helpers import built
from tvm import te

from ansor_deploy._tvm import tvm
from ansor_deploy.codegen.kernels.lowering import compiled
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

# Of each target with instructions that multiply and add, what their names begin with.
TARGETS = {"intel-cpu-avx2": "vfmadd", "intel-cpu-avx512": "vfmadd", "cortex-a53": "fml"}
SHAPE = (8, 64)


def scheduled(output, *inputs):
    """A program whose results are vectors."""
    sch = tvm.s_tir.Schedule(te.create_prim_func([*inputs, output]))
    sch.vectorize(sch.split(sch.get_loops("out")[1], [None, 16])[1])
    return sch.mod["main"]


def two_terms(dtype):
    """The sum of a product and another one, which a buffer holds beforehand."""
    x, y = (te.placeholder(SHAPE, dtype, name) for name in "xy")
    held = te.compute(SHAPE, lambda i, j: y[i, j].astype("float32") * 0.3, name="held")
    made = te.compute(SHAPE, lambda i, j: x[i, j].astype("float32") * 0.7 + held[i, j], name="out")
    return scheduled(made, x, y)


def product():
    """A product of matrices, of which one stands for integers."""
    x, w = te.placeholder((8, 32), "int8", "x"), te.placeholder((32, 64), "float32", "w")
    over = te.reduce_axis((0, 32), name="over")
    return scheduled(
        te.compute(
            SHAPE,
            lambda i, j: te.sum(x[i, over].astype("float32") * w[over, j], axis=over),
            name="out",
        ),
        x,
        w,
    )


def fused(func, name):
    code = compiled({"main": func}, load_target(name, [shipped("targets")]))
    return TARGETS[name] in code.inspect_source("asm")


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_added_to_a_product_before_it_is_rounded(name):
    assert not fused(two_terms("int8"), name)


@pytest.mark.parametrize("name", TARGETS)
def test_other_products_and_sums_of_products_are_one_instruction(name):
    assert fused(two_terms("float32"), name)
    assert fused(product(), name)


def test_each_operation_has_its_own_rounding():
    x, y, out = built.kernel_outputs(tvm.IRModule({"main": two_terms("int8")}))
    expected = x.astype(np.float32) * np.float32(0.7) + y.astype(np.float32) * np.float32(0.3)
    np.testing.assert_array_equal(out, expected)
