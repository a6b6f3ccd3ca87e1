"""Sums of bytes in steps of another scale: saturated, also where they do not fit 32 bits."""

import re
from dataclasses import replace

import numpy as np
import pytest
from helpers import built, graphs
from helpers.graphs import node
from onnx import numpy_helper

from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import lacks
from ansor_deploy.target import load_target

V3 = load_target("x86-64-v3:1", [shipped("targets")])
TARGETS = {
    "host": built.HOST,
    "x86-64-v3": V3,
    "x86-64-v2": replace(V3, cpu="x86-64-v2", vector_bytes=16),
}
RNG = np.random.default_rng(0)
SHAPE = (7, 24)


def product(step):
    """A product of bytes by a matrix, in steps of this scale. Columns have scales of their own."""
    scales = (0.5 ** np.arange(40)).astype(np.float32)
    constants = {
        "xs": np.float32(0.5), "xz": np.uint8(7), "ws": scales, "wz": np.zeros(40, np.int8),
        "w": RNG.integers(-127, 128, (24, 40)).astype(np.int8), "ys": np.float32(step),
        "yz": np.uint8(100),
    }  # fmt: skip
    nodes = [
        node("DequantizeLinear", "x xs xz", "xf"),
        node("DequantizeLinear", "w ws wz", "wf", axis=1),
        node("MatMul", "xf wf", "m"),
        node("QuantizeLinear", "m ys yz", "y"),
    ]
    return graphs.typed(nodes, {"x": ("uint8", SHAPE)}, {"y": "uint8"}, constants)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("step", [300.0, 1.0, 1e-4, 1e-9, 1e-30])
def test_sums_of_any_scale_are_saturated(name, step):
    """With the small steps, sums times the scale do not fit 32 bits."""
    target = TARGETS[name]
    if lacks(target.triple, target.cpu, target.features):
        pytest.skip("this processor has not the instructions")
    proto, x = product(step), RNG.integers(0, 256, SHAPE).astype(np.uint8)
    given = {one.name: numpy_helper.to_array(one) for one in proto.graph.initializer}
    total = (x.astype(np.int32) - 7) @ given["w"].astype(np.int32)
    with np.errstate(over="ignore"):
        ratio = given["xs"] * given["ws"] / given["ys"]
        steps = np.rint(total.astype(np.float32) * ratio) + np.float32(100)
    (y,) = built.run(proto, {"x": x}, target)
    np.testing.assert_array_equal(y, np.clip(steps, 0, 255))


@pytest.mark.parametrize(("step", "fit"), [(300.0, True), (0.1, False)])
def test_what_surely_fits_says_so_by_a_conversion(step, fit):
    (name,) = built.count_ops(product(step), V3)
    assert (re.search(r"round_cast\d*_cast\d*_add", name) is not None) == fit, name
