"""A time that no machine can have taken says nothing of a schedule: it is taken again."""

import math
from contextlib import closing

import pytest
from helpers import programs

from ansor_deploy.devices.site import LocalSite
from ansor_deploy.errors import DeviceLost, MachineError
from ansor_deploy.measure import sites
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

TARGET = load_target("host", [shipped("targets")])
TASK = task_of(programs.conv2d(8, 16, 16)["main"], "conv2d", TARGET)
DEFAULT = dump(default_schedule(TASK.mod, TARGET).trace)


class Jumping(LocalSite):
    """This machine, whose clock says so many times that a candidate took `seconds`."""

    def __init__(self, seconds, times, *, remote=False):
        super().__init__(TARGET.cores)
        self.seconds, self.left, self.remote = seconds, times, remote

    def call(self, function, payload, timeout):
        answer = super().call(function, payload, timeout)
        name = function.partition(":")[2]
        if name not in ("run", "head_to_head") or not self.left:
            return answer
        self.left -= 1
        wrong = {"seconds": [1e-3, self.seconds]}
        return {**answer, **wrong} if name == "run" else [{**one, **wrong} for one in answer]


@pytest.mark.parametrize("seconds", [1e-30, 1.01e-9, -1e-3, math.nan])
def test_a_clock_that_was_set_costs_another_run(seconds):
    with closing(Jumping(seconds, 2)) as site, Measurer(TARGET, [site]) as measurer:
        (outcome,) = measurer.measure(TASK, [DEFAULT])
        assert outcome.error == ""
        assert min(outcome.seconds) > 1e-8
        site.left = 1
        assert min(measurer.head_to_head(TASK, [DEFAULT])[0].seconds) > 1e-8


def test_a_clock_that_stays_wrong_is_the_machine_s_fault():
    with (
        closing(Jumping(1e-30, math.inf)) as site,
        Measurer(TARGET, [site]) as measurer,
        pytest.raises(MachineError, match="no machine does this in 1e-30 s"),
    ):
        measurer.measure(TASK, [DEFAULT])


def test_a_board_that_lies_about_its_times_is_given_up(monkeypatch):
    monkeypatch.setattr(sites, "RETURN_SECONDS", (0, 0.1))
    with (
        closing(Jumping(1e-30, math.inf, remote=True)) as site,
        Measurer(TARGET, [site]) as measurer,
        pytest.raises(DeviceLost, match="its clock cannot be believed"),
    ):
        measurer.head_to_head(TASK, [DEFAULT])
