"""The rules for GPUs, without a GPU: their programs are legal, right, and compile for a V100."""

import random
from contextlib import suppress

import numpy as np
import pytest
from helpers import built
from helpers.programs import PROGRAMS
from tvm.s_tir import meta_schedule as ms

from ansor_deploy._tvm import tvm_target
from ansor_deploy.codegen import nvrtc
from ansor_deploy.codegen.gpu_kernel import gpu_source
from ansor_deploy.codegen.lowering import code_generation
from ansor_deploy.errors import AnsorError
from ansor_deploy.project import shipped
from ansor_deploy.search.metaschedule import load_intrinsics
from ansor_deploy.space.question import Guess, Random
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.sketch import derive
from ansor_deploy.target import load_target

V100 = load_target("v100", [shipped("targets")])
TILED = ["matmul", "matmul odd", "batched", "conv residual", "conv bare", "conv nchw", "conv3d"]
REDUCED = ["softmax", "layer norm", "mean of all", "max of row"]
OTHERS = ["add", "add scalar", "max pool", "concat rows", "gather"]


def sketches(name):
    return derive(PROGRAMS[name](), V100, shipped_rules("cuda")).sketches


def programs(name, fresh):
    """The default program, and some at random that fit the device."""
    found = []
    for sketch in sketches(name):
        found.append(sketch.program(Guess()))
        for seed in range(20 * fresh):
            try:
                found.append(sketch.program(Random(random.Random(seed))))
            except ValueError:  # more threads or memory than a block may have
                continue
            if len(found) > fresh:
                break
    return found


def is_legal(sch):
    """As TVM's own search decides it: threads, shared memory and vectors within the limits."""
    load_intrinsics()
    verifier = ms.postproc.VerifyGPUCode()
    context = ms.TuneContext(mod=sch.mod, target=tvm_target(V100), num_threads=1)
    verifier._initialize_with_tune_context(context)
    return verifier.apply(sch)


def cuda_source(mod):
    with code_generation(V100):
        return gpu_source(mod["main"], "kernel", V100).text


@pytest.mark.parametrize("name", TILED)
def test_contractions_are_tiled_over_threads(name):
    (sketch,) = sketches(name)
    assert "thread-tile" in str(sketch)
    text = sketch.program(Guess()).sch.mod.script()
    for word in ('"blockIdx.x"', '"threadIdx.x"', 'scope="shared"', 'scope="local"'):
        assert word in text


@pytest.mark.parametrize("name", REDUCED)
def test_rows_are_reduced_across_threads(name):
    assert any("cross-thread-reduction" in str(sketch) for sketch in sketches(name))


@pytest.mark.parametrize("name", [*TILED, *REDUCED, *OTHERS])
def test_every_program_is_legal_on_the_device(name):
    found = programs(name, 3)
    assert found
    assert all(is_legal(candidate.sch) for candidate in found)


@pytest.mark.parametrize("name", TILED)
def test_four_random_programs_of_five_fit_the_device(name):
    (sketch,) = sketches(name)
    fit = 0
    for seed in range(20):
        with suppress(ValueError):
            fit += is_legal(sketch.program(Random(random.Random(seed))).sch)
    assert fit >= 16


@pytest.mark.parametrize("name", [*TILED, *REDUCED, *OTHERS])
def test_no_result_changes(name):
    want = built.kernel_outputs(PROGRAMS[name]())
    for candidate in programs(name, 1):
        have = built.kernel_outputs(built.in_turn(candidate.sch.mod))
        for one, other in zip(have, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["matmul", "conv residual", "softmax", "add"])
def test_cuda_code_is_generated(name):
    for candidate in programs(name, 1):
        assert "__global__" in cuda_source(candidate.sch.mod)


@pytest.mark.parametrize("name", ["matmul", "conv residual", "softmax"])
def test_the_code_compiles_for_the_device(name):
    try:
        nvrtc.check()
    except AnsorError:
        pytest.skip("needs ansor-deploy[cuda]")
    for candidate in programs(name, 1):
        cubin, _ = nvrtc.compiled(cuda_source(candidate.sch.mod), V100.gpu.arch)
        assert cubin
