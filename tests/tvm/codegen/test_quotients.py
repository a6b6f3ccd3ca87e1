"""Quotients in steps without a division: the steps of a division, for all numbers."""

from dataclasses import replace

import numpy as np
import pytest
from tvm import te

from ansor_deploy._tvm import tirx, tvm, tvm_target
from ansor_deploy.codegen.kernels.lowering import PIPELINE, compiled
from ansor_deploy.codegen.passes.quotients import in_steps
from ansor_deploy.space.loops import parallel_map
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import lacks
from ansor_deploy.target import load_target

V3 = load_target("x86-64-v3:1", [shipped("targets")])
V2 = replace(V3, cpu="x86-64-v2", vector_bytes=16)
ARM = load_target("cortex-a53", [shipped("targets")])
ODD = [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -1e-45, 0.0, -0.0]
SCALES = [np.float32(one) for one in (0.0123, 0.018658448, 3.7, 1e-9, 1e9, 1 / 3, 0.5)]


def near_ends(scale):
    """Numbers at the ends of steps and beside them, numbers in between, and odd ones."""
    ends = ((np.arange(-600, 600) + 0.5) * np.float64(scale)).astype(np.float32)
    beside = [np.nextafter(ends, np.float32(to)) for to in (-np.inf, np.inf)]
    between = np.random.default_rng(0).uniform(-300, 300, 4096) * scale
    found = np.concatenate([ends, *beside, between, ODD]).astype(np.float32)
    return np.resize(found, (-(-found.size // 32), 32))


def quantised(scale, shape, target):
    """The program that rounds to bytes in steps of a scale, around 7."""
    x = te.placeholder(shape, "float32", name="x")

    def element(*at):
        steps = tirx.nearbyint(x(*at) / tirx.const(float(scale), "float32")) + 7.0
        return tirx.max(tirx.min(steps, 255.0), 0.0).astype("int32").astype("uint8")

    mod = tvm.IRModule({"main": te.create_prim_func([x, te.compute(shape, element, name="y")])})
    sch = tvm.s_tir.Schedule(mod)
    parallel_map(sch, sch.get_sblock("y"), target)
    return sch.mod


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("target", [V3, V2], ids=["fused", "divided"])
def test_steps_are_those_of_a_division(scale, target):
    if lacks(target.triple, target.cpu, target.features):
        pytest.skip("this processor has not the instructions")
    x = near_ends(scale)
    y = tvm.runtime.tensor(np.zeros(x.shape, np.uint8))
    mod = quantised(scale, x.shape, target)
    library = tvm.compile(mod, target=tvm_target(target), tir_pipeline=PIPELINE)
    library["main"](tvm.runtime.tensor(x), y)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = np.clip(np.rint(x / scale) + np.float32(7), 0, 255)
    np.testing.assert_array_equal(y.numpy(), np.where(np.isnan(x), 0, wanted))


@pytest.mark.parametrize(
    ("target", "division", "divides"),
    [(V3, "vdivps", False), (ARM, "fdiv", False), (V2, "divps", True)],
    ids=["x86-64-v3", "AArch64", "x86-64-v2"],
)
def test_nothing_is_divided_where_the_processor_can_do_without(target, division, divides):
    code = compiled({"main": quantised(0.0123, (8, 64), target)["main"]}, target)
    assert (division in code.inspect_source("asm")) == divides


@pytest.mark.parametrize("scale", [-0.3, 0.5, 0.0])
def test_other_divisors_stay(scale):
    quotient = tirx.Div(tirx.Var("x", "float32"), tirx.const(scale, "float32"))
    assert in_steps(quotient, 0, 255) is quotient
