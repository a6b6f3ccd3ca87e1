"""Which programs make other bytes on another processor, told by what they compute."""

import pytest
from tvm import te

from ansor_deploy.codegen.passes.same_bytes import may_differ

SHAPE = (8, 16)


def program(compute, dtype="float32"):
    """Of two tensors: compute gives the result of them, or a list of what is made on the way."""
    x, y = (te.placeholder(SHAPE, dtype, name) for name in "xy")
    made = compute(x, y)
    return te.create_prim_func([x, y, made])


def each(element):
    return lambda x, y: te.compute(SHAPE, lambda i, j: element(x[i, j], y[i, j]), name="out")


def sums(dtype, given):
    def compute(x, y):
        at = te.reduce_axis((0, SHAPE[1]), name="at")
        a, b = (lambda i, one=one: one[i, at].astype(given) for one in (x, y))
        total = te.compute(SHAPE[:1], lambda i: te.sum(a(i) * b(i), axis=at), name="total")
        if dtype == given:
            return total
        return te.compute(SHAPE[:1], lambda i: total[i].astype(dtype), name="out")

    return compute


def real(value):
    return value.astype("float32")


SAME = {
    "one operation": (each(lambda a, b: a / b), "float32"),
    "a root": (each(lambda a, b: te.sqrt(a) + b), "float32"),
    "sums of integers": (sums("int32", "int32"), "int8"),
    "whole numbers in floats": (sums("int32", "float32"), "int8"),
    "two products, kept apart": (each(lambda a, b: real(a) * 0.3 + real(b) * 0.7), "uint8"),
    "the greater": (each(te.max), "float32"),
}
OTHERS = {
    "a function": (each(lambda a, b: te.exp(a) * b), "float32"),
    "sums of floats": (sums("float32", "float32"), "float32"),
    "sums of floats that stand for integers": (sums("float32", "float32"), "uint8"),
    "a product and a sum": (each(lambda a, b: a * 0.3 + b), "float32"),
}


@pytest.mark.parametrize(("compute", "dtype"), SAME.values(), ids=SAME)
def test_every_processor_makes_the_same(compute, dtype):
    assert not may_differ(program(compute, dtype))


@pytest.mark.parametrize(("compute", "dtype"), OTHERS.values(), ids=OTHERS)
def test_processors_may_differ(compute, dtype):
    assert may_differ(program(compute, dtype))


def test_nothing_keeps_products_and_sums_apart_on_a_gpu():
    assert may_differ(program(*SAME["two products, kept apart"]), on_gpu=True)
