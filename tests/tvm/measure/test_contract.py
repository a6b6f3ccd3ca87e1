"""The project's own measurers keep the contract that a user's can be held to."""

from contextlib import nullcontext

import pytest
import tvm
from helpers import programs
from helpers.built import HOST

from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.testing.measurer import MeasurerContract, check_outcome
from benchmarks.search.replay import ReplayMeasurer

TASK = task_of(programs.softmax(16, 100)["main"], "softmax", HOST)
TRACES = [dump(default_schedule(TASK.mod, HOST).trace), dump(tvm.s_tir.Schedule(TASK.mod).trace)]


class OfSoftmax(MeasurerContract):
    def task(self):
        return TASK

    def traces(self):
        return TRACES


class TestMeasurer(OfSoftmax):
    def measurer(self):
        return Measurer(HOST)


class TestReplayMeasurer(OfSoftmax):
    def measurer(self):
        return ReplayMeasurer((TASK.workload.key, Outcome(trace, (1e-3,))) for trace in TRACES)


class Forgetful:
    """A measurer that leaves out what fails."""

    def measure(self, task, traces, best=0.0):
        return [Outcome(trace, (1e-3,)) for trace in traces if trace in TRACES]


class Forgetting(OfSoftmax):
    def measurer(self):
        return nullcontext(Forgetful())


def test_the_contract_finds_a_measurer_that_leaves_out_what_fails():
    with pytest.raises(AssertionError):
        Forgetting().test_each_trace_gets_an_outcome_in_order()


@pytest.mark.parametrize(
    "outcome",
    [Outcome("t"), Outcome("t", (0.0,)), Outcome("t", error="odd"), Outcome("t", error="build")],
)
def test_an_outcome_says_something(outcome):
    with pytest.raises(AssertionError):
        check_outcome(outcome)
