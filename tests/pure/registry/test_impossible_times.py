"""What no machine can have timed is refused, and what a fast one has is not."""

import math
from dataclasses import replace

import pytest
from helpers.registry_samples import TARGET, workload

from ansor_deploy.system.environment import shipped
from ansor_deploy.system.run_times import CALL_SECONDS, impossible
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
    assert 5 * work(flops=target.peak_gflops * 1e9).least_seconds(target) < 1
    assert 10 * work(bytes=target.memory_gbs * 1e9).least_seconds(target) < 1


def test_work_takes_time_on_every_machine():
    assert work().least_seconds(TARGET) == CALL_SECONDS
    assert work(flops=2e9).least_seconds(TARGET) > 1e-4
    assert work(bytes=1e9).least_seconds(TARGET) > 1e-5
    twice = replace(TARGET, cores=2 * TARGET.cores)
    assert work(flops=4e9).least_seconds(twice) == work(flops=2e9).least_seconds(TARGET)


def test_estimates_decide_nothing():
    wrong = replace(TARGET, peak_gflops=1.0, memory_gbs=0.1)
    assert work(flops=2e9).least_seconds(wrong) == work(flops=2e9).least_seconds(TARGET)
