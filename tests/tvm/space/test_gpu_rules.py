"""The rules for GPUs, without a GPU: their programs are legal, right, and compile for a V100."""

import random
from contextlib import suppress
from functools import cache

import numpy as np
import pytest
from helpers import built
from helpers import programs as programs_of
from helpers.programs import PROGRAMS
from tvm.s_tir import meta_schedule as ms

from ansor_deploy._tvm import tvm_target
from ansor_deploy.codegen.gpu import nvrtc
from ansor_deploy.codegen.gpu.machine_code import gpu_source
from ansor_deploy.codegen.kernels.lowering import code_generation
from ansor_deploy.errors import AnsorError
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Guess, Random
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.thread_tile import part_sizes
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
from ansor_deploy.tune.search.metaschedule import load_intrinsics

V100 = load_target("v100", [shipped("targets")])
TILED = ["matmul", "matmul odd", "batched", "conv residual", "conv bare", "conv nchw", "conv3d"]
REDUCED = ["softmax", "layer norm", "mean of all", "max of row"]
OTHERS = ["add", "add scalar", "max pool", "concat rows", "gather"]


@cache
def sketches(name):
    return derive(PROGRAMS[name](), V100, shipped_rules("cuda")).sketches


@cache
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
    load_intrinsics("llvm")  # a context imports those of all kinds; none is looked up
    verifier = ms.postproc.VerifyGPUCode()
    context = ms.TuneContext(mod=sch.mod, target=tvm_target(V100), num_threads=1)
    verifier._initialize_with_tune_context(context)
    return verifier.apply(sch)


def cuda_source(mod):
    with code_generation(V100):
        return gpu_source(mod["main"], "kernel", V100).text


@pytest.mark.parametrize("name", TILED)
def test_contractions_are_tiled_over_threads(name):
    fetched, direct = sketches(name)
    for sketch, rule in ((fetched, ":thread-tile"), (direct, ":direct-thread-tile")):
        assert rule in str(sketch)
        text = sketch.program(Guess()).sch.mod.script()
        for word in ('"blockIdx.x"', '"threadIdx.x"', 'scope="local"'):
            assert word in text
        assert ('scope="shared"' in text) == (sketch is fetched)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_with_one_row_is_summed_by_several_threads(transposed):
    mod = programs_of.matmul(1, 256, 100, transposed=transposed)
    first, *others = derive(mod, V100, shipped_rules("cuda")).sketches
    assert "cross-thread-reduction" in str(first)
    assert len(others) == 2
    made = first.program(Guess())
    assert is_legal(made.sch)
    assert ("threadIdx.y" in made.sch.mod.script()) == (not transposed)
    want = built.loop_outputs(mod)
    for one, other in zip(built.loop_outputs(built.in_turn(made.sch.mod)), want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("rows", "columns"), [(197, 24), (17, 50), (49, 21)])
def test_tiles_need_not_divide(rows, columns):
    mod = programs_of.matmul(rows, 24, columns)
    want = built.loop_outputs(mod)
    sketch, _ = derive(mod, V100, shipped_rules("cuda")).sketches
    cut = 0
    for chooser in (Guess(), *(Random(random.Random(seed)) for seed in range(3))):
        made = sketch.program(chooser).sch
        cut += "T.where" in made.mod.script()
        assert is_legal(made)
        for one, other in zip(built.loop_outputs(built.in_turn(made.mod)), want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    assert cut


@pytest.mark.parametrize(
    ("size", "most", "wanted"),
    [
        (7, 8, [1, 2, 4, 7]),
        (197, 32, [1, 2, 4, 8, 16, 32]),
        (24, 8, [1, 2, 3, 4, 6, 8]),
        (5, 1, [1]),
    ],
)
def test_parts_of_an_extent_divide_it_or_exceed_it_by_little(size, most, wanted):
    assert part_sizes(size, most) == wanted


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
    for sketch in sketches(name):
        fit = 0
        for seed in range(10):
            with suppress(ValueError):
                fit += is_legal(sketch.program(Random(random.Random(seed))).sch)
        assert fit >= 8


@pytest.mark.parametrize("name", [*TILED, *REDUCED, *OTHERS])
def test_no_result_changes(name):
    want = built.loop_outputs(PROGRAMS[name]())
    for candidate in programs(name, 1):
        have = built.loop_outputs(built.in_turn(candidate.sch.mod))
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
