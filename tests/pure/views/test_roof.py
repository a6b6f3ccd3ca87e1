"""What a kernel takes at least, by the threads of a run and by where its tensors lie."""

from dataclasses import replace

import pytest
from helpers.registry_samples import TARGET

from ansor_deploy.runtime.profile import KernelTime
from ansor_deploy.system.bandwidth import bandwidths
from ansor_deploy.views.roof import Roof, roof_of

ROOF = Roof(1, 100.0, ((1e6, 1e11), (float("inf"), 1e10)))


def least(flops, size, **more):
    task = {"flops": flops, "bytes": size, "title": "conv2d 3x3 64->64 @56x56", **more}
    return ROOF.seconds(KernelTime("k", "conv2d", 1e-3, (), task))


def test_arithmetic_or_the_cache_that_can_hold_the_tensors_limits():
    assert least(1e9, 1e3) == pytest.approx(1e-2)
    assert least(1.0, 1e6) == pytest.approx(1e-5)
    assert least(1.0, 2e6) == pytest.approx(2e-4)


def test_winograd_is_held_to_the_multiplications_that_it_makes():
    assert least(1e9, 1e3, rewriting="winograd conv 4") == pytest.approx(1e-2 / 4)
    assert least(1e9, 1e3, rewriting="winograd conv 2") == pytest.approx(1e-2 / 2.25)


def test_what_is_no_task_has_no_limit():
    assert ROOF.seconds(KernelTime("k", "copy", 1e-3, (), None)) is None


def test_a_run_on_one_thread_is_held_to_one_core():
    target = replace(TARGET, cores=4, peak_gflops=400.0)
    assert roof_of(target, 1, here=False) == Roof(1, 100.0)
    assert roof_of(target, 0, here=False).gflops == roof_of(target, 8, here=False).gflops == 400.0


def test_every_level_is_measured_once():
    levels = bandwidths((1 << 16, 1 << 20), 1)
    assert [size for size, _ in levels] == [1 << 16, 1 << 20, float("inf")]
    assert all(rate > 1e6 for _, rate in levels)
    assert bandwidths((1 << 16, 1 << 20), 1) is levels
