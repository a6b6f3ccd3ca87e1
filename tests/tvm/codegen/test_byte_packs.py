"""Vectors of steps narrowed to bytes at once: each byte in its place, and as it was alone."""

from dataclasses import replace

import numpy as np
import pytest
from tvm import te

from ansor_deploy._tvm import tirx, tvm, tvm_target
from ansor_deploy.codegen.kernels.lowering import PIPELINE, compiled
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import lacks
from ansor_deploy.target import load_target

AVX2, AVX512 = (
    replace(load_target(f"intel-cpu-{name}", [shipped("targets")]), cpu=f"x86-64-{cpu}", cores=1)
    for name, cpu in (("avx2", "v3"), ("avx512", "v4"))
)
ARM = load_target("cortex-a53", [shipped("targets")])
SSE = replace(AVX2, cpu="x86-64-v2")
EDGES = [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.5, 1.5, -0.5, 2147483648.0, -2147483904.0, 3e9]


def steps(kind, zero, low, count, lanes):
    """Numbers rounded to bytes, `count` vectors of so many lanes written out in each row.

    zero: None where it is read.
    """
    x = te.placeholder((40, count * lanes), name="x")
    read = te.placeholder((1,), kind, name="z")

    def element(*at):
        more = read[0].astype("float32") if zero is None else tirx.const(float(zero), "float32")
        moved = tirx.nearbyint(x[at]) + more
        most = float(np.iinfo(kind).max)
        return tirx.max(tirx.min(moved, most), float(low)).astype("int32").astype(kind)

    return by_vectors([x, read], element, lanes)


def by_vectors(given, element, lanes):
    """A program that computes an element for each of the first tensor, each row by vectors."""
    y = te.compute(given[0].shape, element, name="y")
    sch = tvm.s_tir.Schedule(te.create_prim_func([*given, y]))
    _, column = sch.get_loops("y")
    vector, lane = sch.split(column, [None, lanes])
    sch.unroll(vector)
    sch.vectorize(lane)
    return sch.mod


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=["AVX2", "AVX-512"])
@pytest.mark.parametrize("count", [2, 3, 4, 7])
@pytest.mark.parametrize("read", [False, True], ids=["known", "read"])
@pytest.mark.parametrize(
    ("kind", "zero", "low"), [("uint8", 0, 0), ("uint8", 128, 128), ("int8", -7, -128)]
)
def test_bytes_are_clipped_and_in_order(target, count, read, kind, zero, low):
    if lacks(target.triple, target.cpu, target.features):
        pytest.skip("this processor has not the instructions")
    lanes = target.vector_bytes // 4
    mod = steps(kind, None if read else zero, low, count, lanes)
    x = np.random.default_rng(0).uniform(-300, 300, (40, count * lanes))
    x = np.where(np.arange(x.size).reshape(x.shape) % 2, np.rint(2 * x) / 2, x).astype(np.float32)
    x[0, : len(EDGES)] = EDGES
    y = tvm.runtime.tensor(np.zeros(x.shape, kind))
    library = tvm.compile(mod, target=tvm_target(target), tir_pipeline=PIPELINE)
    library["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(np.full(1, zero, kind)), y)
    wanted = np.clip(np.rint(x) + np.float32(zero), low, np.iinfo(kind).max)
    np.testing.assert_array_equal(y.numpy(), np.where(np.isnan(x), low, wanted))


def whole_steps(kind, zero, low, high, lanes):
    """Numbers that are said to fit int32, rounded to bytes and clipped; four vectors in a row."""
    x = te.placeholder((40, 4 * lanes), name="x")

    def element(*at):
        whole = tirx.nearbyint(x[at]).astype("int32").astype("float32")
        moved = whole + tirx.const(float(zero), "float32")
        return tirx.max(tirx.min(moved, float(high)), float(low)).astype("int32").astype(kind)

    return by_vectors([x], element, lanes)


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=["AVX2", "AVX-512"])
@pytest.mark.parametrize(
    ("kind", "zero", "low", "high"),
    [("uint8", 3, 0, 255), ("uint8", 128, 128, 200), ("int8", -7, -128, 127), ("int8", 5, -9, 9)],
)
def test_what_fits_int32_is_clipped_when_it_is_packed(target, kind, zero, low, high):
    if lacks(target.triple, target.cpu, target.features):
        pytest.skip("this processor has not the instructions")
    lanes = target.vector_bytes // 4
    mod = whole_steps(kind, zero, low, high, lanes)
    x = np.random.default_rng(0).uniform(-300, 300, (40, 4 * lanes)).astype(np.float32)
    x[0, :8] = [-(2.0**30), 2.0**30, 40000, -40000, 0.5, -0.5, 1.5, 32767.5]
    y = tvm.runtime.tensor(np.zeros(x.shape, kind))
    library = tvm.compile(mod, target=tvm_target(target), tir_pipeline=PIPELINE)
    library["main"](tvm.runtime.tensor(x), y)
    np.testing.assert_array_equal(y.numpy(), np.clip(np.rint(x) + np.float32(zero), low, high))
    code = compiled({"main": mod["main"]}, target).inspect_source("asm")
    assert "vpack" in code
    assert not any(one in code for one in ("vminps", "vmaxps"))


@pytest.mark.parametrize(
    ("target", "found"),
    [(AVX2, True), (AVX512, True), (SSE, False)],
    ids=["AVX2", "AVX-512", "SSE"],
)
@pytest.mark.parametrize("zero", [3, None], ids=["known", "read"])
def test_a_register_is_narrowed_by_packs_where_the_processor_can(target, found, zero):
    mod = steps("uint8", zero, 0, 4, target.vector_bytes // 4)
    code = compiled({"main": mod["main"]}, target).inspect_source("asm")
    assert ("vpackuswb" in code and "vcvtps2dq" in code) == found


def test_bytes_that_a_pass_makes_of_floats_are_packed_by_default():
    """The pass goes in vectors of bytes, though it computes on float32."""
    x = te.placeholder((40, 96), name="x")
    limited = lambda *at: tirx.max(tirx.min(tirx.nearbyint(x[at]), 255.0), 0.0)  # noqa: E731
    y = te.compute(x.shape, lambda *at: limited(*at).astype("int32").astype("uint8"), name="y")
    mod = tvm.IRModule({"main": te.create_prim_func([x, y])})
    func = default_schedule(mod, AVX2).mod["main"]
    assert "vpackuswb" in compiled({"main": func}, AVX2).inspect_source("asm")


def test_aarch64_converts_what_fits_as_it_is():
    mod = whole_steps("uint8", 3, 0, 255, 4)
    code = compiled({"main": mod["main"]}, ARM).inspect_source("asm")
    assert "fcvtns" in code
    assert "fmaxnm" not in code


@pytest.mark.parametrize(("kind", "narrowed"), [("uint8", "sqxtun"), ("int8", "sqxtn")])
def test_aarch64_narrows_by_instructions_that_saturate(kind, narrowed):
    """Their bytes are those of others: `tests/device/test_same_bytes.py`."""
    code = compiled({"main": steps(kind, 3, 0, 4, 4)["main"]}, ARM).inspect_source("asm")
    assert all(one in code for one in ("fcvtns", "sqxtn2", narrowed))
