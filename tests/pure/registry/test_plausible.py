"""What no machine can have timed is refused, and what a fast one has is not."""

import math
from dataclasses import replace

import pytest
from helpers.registry_samples import TARGET, workload

from ansor_deploy.registry.plausible import CALL_SECONDS, impossible, least_seconds
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import list_targets, load_target


def work(**figures):
    return replace(workload(), **{"flops": 0.0, "bytes": 0.0, **figures})


@pytest.mark.parametrize(
    "seconds",
    [
        *([], None, "1e-3", 1e-3, [None], ["1e-3"], [True], [1], [[1e-3]]),
        *([math.nan], [math.inf], [-math.inf], [-1e-3], [0.0], [-0.0], [5e-324]),
        *([1e-30], [1.01e-9], [1e-3, 1e-30], [1e-3, math.nan], [86_400.0]),
    ],
)
def test_what_is_no_time_of_a_run_is_impossible(seconds):
    assert impossible(seconds)


def test_what_is_below_the_least_is_impossible():
    assert impossible([1e-3, 2e-3], 1e-3) == ""
    assert "0.001 s: it takes at least 0.002 s" in impossible([1e-3, 2e-3], 2e-3)


@pytest.mark.parametrize("name", list_targets([shipped("targets")]))
def test_no_target_s_own_peak_and_bandwidth_are_impossible(name):
    target = load_target(name, [shipped("targets")])
    # Bytes are a quarter of a float, and clocks rise.
    assert 5 * least_seconds(work(flops=target.peak_gflops * 1e9), target) < 1
    assert 10 * least_seconds(work(bytes=target.memory_gbs * 1e9), target) < 1


def test_work_takes_time_on_every_machine():
    assert least_seconds(work(), TARGET) == CALL_SECONDS
    assert least_seconds(work(flops=2e9), TARGET) > 1e-4
    assert least_seconds(work(bytes=1e9), TARGET) > 1e-5
    twice = replace(TARGET, cores=2 * TARGET.cores)
    assert least_seconds(work(flops=4e9), twice) == least_seconds(work(flops=2e9), TARGET)


def test_estimates_decide_nothing():
    wrong = replace(TARGET, peak_gflops=1.0, memory_gbs=0.1)
    assert least_seconds(work(flops=2e9), wrong) == least_seconds(work(flops=2e9), TARGET)
