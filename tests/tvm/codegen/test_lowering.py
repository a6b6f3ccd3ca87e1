"""What a thread keeps to itself is on its stack, and what is too large for that is not."""

import numpy as np
import pytest
import tvm
from helpers import built, programs
from tvm import te
from tvm_ffi import structural_equal

from ansor_deploy._tvm import collect, tirx, tvm_target
from ansor_deploy.codegen.kernels import lowering
from ansor_deploy.codegen.kernels.lowering import PIPELINE, _cut_off
from ansor_deploy.codegen.passes.buffer_sizes import STACK_BYTES
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from benchmarks.machine import hot_loops

# Extents that neither rows nor vectors divide.
TILED = [programs.matmul(59, 24, 53), programs.batched(transposed=True, rows=37, columns=29)]
FROM_HEAP = "TVMBackendAllocWorkspace"


def rows_in_steps(width: int) -> tvm.IRModule:
    """Rows of floats, each made in two steps by one of several threads."""
    x = te.placeholder((6, width), name="x")
    doubled = te.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="doubled")
    out = te.compute(x.shape, lambda i, j: doubled[i, width - 1 - j] + 1.0, name="out")
    sch = tvm.s_tir.Schedule(te.create_prim_func([x, out]).with_attr("global_symbol", "main"))
    row, _ = sch.get_loops(sch.get_sblock("out"))
    sch.parallel(row)
    sch.compute_at(sch.get_sblock("doubled"), row)
    return sch.mod


def generated(mod: tvm.IRModule, pipeline: str, form: str = "ll") -> str:
    return tvm.compile(mod, tvm_target(built.HOST), tir_pipeline=pipeline).mod.inspect_source(form)


@pytest.mark.parametrize(
    ("size", "stays"), [(64, True), (1024, True), (STACK_BYTES, True), (STACK_BYTES + 4, False)]
)
def test_a_threads_small_buffers_are_on_its_stack(size, stays):
    mod = rows_in_steps(size // 4)
    assert (FROM_HEAP not in generated(mod, PIPELINE)) == stays
    x, out = built.kernel_outputs(mod)
    np.testing.assert_array_equal(out, x[:, ::-1] * np.float32(2) + np.float32(1))


def test_tvm_itself_takes_a_kilobyte_from_the_heap():
    """If it no longer does, this project's pipeline has nothing left to do."""
    assert FROM_HEAP in generated(rows_in_steps(1024 // 4), "s_tir")


@pytest.mark.parametrize("mod", TILED)
@pytest.mark.parametrize("width", [16, 32, 64])
def test_no_tile_asks_where_an_extent_ends(mod, width):
    scheduled = default_schedule(mod, built.with_vectors(width)).mod
    assert "T.where(" in scheduled.script()
    passes = [_cut_off, tirx.transform.UnrollLoop(), tirx.transform.StmtSimplify()]
    lowered = tvm.transform.Sequential(passes)(scheduled)
    loops = collect(lowered["main"].body, tirx.For)
    inside = [one.body for one in loops if one.kind != tirx.ForKind.PARALLEL]
    assert inside
    assert not any(collect(body, tirx.IfThenElse) for body in inside)


def test_what_no_rule_marked_is_not_cut():
    mod = rows_in_steps(60)
    assert structural_equal(_cut_off(mod), mod)


def test_passes_that_are_left_out_would_change_nothing(monkeypatch):
    """Beside TVM's own; neither deals out the tasks of a loop, and both check arguments."""
    monkeypatch.setattr(lowering, "chunks", tvm.transform.Sequential([]))
    monkeypatch.setattr(lowering, "packed_api", tirx.transform.MakePackedAPI())
    mod = default_schedule(TILED[0], built.with_vectors(64)).mod
    shorter = generated(mod, PIPELINE, "asm")
    everything, _, _ = tirx.get_tir_pipeline("s_tir")
    monkeypatch.setattr(lowering, "_on_processors", lambda: [everything])
    assert shorter == generated(mod, PIPELINE, "asm")


@pytest.mark.parametrize(
    "mod",
    [
        programs.conv2d(14, 144, 144, 1, 1, 0),
        programs.conv2d(7, 512, 512),
        programs.matmul(59, 128, 96),
    ],
    ids=["pointwise", "convolution", "matrix"],
)
def test_no_tile_for_arm_goes_to_the_stack(mod):
    """None of its instructions reads memory and multiplies: operands take registers, too."""
    target = load_target("cortex-a53", [shipped("targets")])
    loops = hot_loops.of_kernel(mod, target)
    assert loops
    assert not any(loop.stack for loop in loops if loop.multiply_adds > 32)


def test_the_constants_of_an_activation_leave_registers_to_the_sums():
    x, w = te.placeholder((1024, 96), name="x"), te.placeholder((96, 384), name="w")
    b, k = te.placeholder((384,), name="b"), te.reduce_axis((0, 96), name="k")
    made = te.compute((1024, 384), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="made")
    moved = te.compute(made.shape, lambda i, j: made[i, j] + b[j], name="moved")
    out = te.compute(made.shape, lambda i, j: moved[i, j] * te.sigmoid(moved[i, j]), name="out")
    func = te.create_prim_func([x, w, b, out]).with_attr("layout_free_buffers", [1, 2])
    target = load_target("intel-cpu-avx512", [shipped("targets")])
    kernel = {"main": default_schedule(tvm.IRModule({"main": func}), target).mod["main"]}
    plain = tvm.tirx.build(tvm.IRModule(kernel), target=tvm_target(target), pipeline=PIPELINE)
    ours = lowering.compiled(kernel, target)
    spilled, kept = (one.inspect_source("asm").count("(%rsp)") for one in (plain, ours))
    assert kept < spilled / 2
