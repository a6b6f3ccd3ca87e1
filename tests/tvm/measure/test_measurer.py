"""Several sites, drift, timing head to head: this machine's processes stand for boards."""

import math
import time
from itertools import chain, repeat

import onnx
import pytest
import tvm
from helpers import programs
from helpers.graphs import model, node, randn

from ansor_deploy.devices.machine import Machine
from ansor_deploy.devices.site import LocalSite
from ansor_deploy.errors import DeviceError, DeviceLost
from ansor_deploy.measure import health, sites
from ansor_deploy.measure import measurer as measurers
from ansor_deploy.measure.head_to_head import TURNS, in_turns
from ansor_deploy.measure.health import Health
from ansor_deploy.measure.measurer import CHUNK, Measurer
from ansor_deploy.measure.site_runner import SiteRunner
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.registry.store import Registry
from ansor_deploy.request import Budget, Request
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.worker import WorkerFailure
from ansor_deploy.target import load_target
from ansor_deploy.tune import intake
from ansor_deploy.tune.plan import plan_models
from ansor_deploy.tune.queue import pending, tune_plan
from ansor_deploy.tune.workspace import Workspace
from ansor_deploy.views.plain import QuietReport

TARGET = load_target("host", [shipped("targets")])


class Board(LocalSite):
    """This machine under another name, with a connection that can be cut."""

    remote = True

    def __init__(self, name):
        super().__init__(1)
        self.name, self.cut, self.answers, self.calls = name, False, True, []
        self.absence = DeviceLost(f"{name} is away")
        self.lives = math.inf  # how many candidates it outlives

    def start(self):
        if not self.answers:
            raise self.absence
        self.cut = False
        super().start()

    def call(self, function, payload, timeout):
        if self.cut:
            raise DeviceLost(f"{self.name} is away")
        self.calls.append((time.monotonic(), function.partition(":")[2]))
        self.lives -= function.endswith(":run")
        if self.lives < 0:
            self.cut, self.answers = True, False
            return self.call(function, payload, timeout)
        return super().call(function, payload, timeout)


def conv():
    return task_of(programs.conv2d(8, 16, 16)["main"], "conv2d", TARGET)


def default_trace(task):
    return dump(default_schedule(task.mod, TARGET).trace)


def plain_trace(task):
    return dump(tvm.s_tir.Schedule(task.mod).trace)


@pytest.fixture
def boards(monkeypatch):
    monkeypatch.setattr(sites, "RETURN_SECONDS", (0, 0.1))
    made = [Board("left"), Board("right")]
    yield made
    for one in made:
        one.close()


class Recorded:
    """A library that writes down when it is timed."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def times(self, number, repeat):
        self.log.append(self.name)
        return [1e-3] * repeat


def test_a_turn_times_each_library_once_and_none_is_always_first():
    log = []
    times = in_turns([Recorded(name, log) for name in "abc"])
    assert [len(one) for one in times] == [TURNS] * 3
    turns = ["".join(log[at : at + 3]) for at in range(3, len(log), 3)]  # the first estimates
    assert len(turns) == TURNS
    assert set(turns) == {"abc", "cba"}


def test_head_to_head_what_cannot_be_built_leaves_the_others_their_times():
    task = conv()
    with Measurer(TARGET) as measurer:
        default, plain = default_trace(task), plain_trace(task)
        first, second, broken = measurer.head_to_head(task, [plain, default, "no trace"])
    assert len(first.seconds) == len(second.seconds) == TURNS
    assert first.proof
    assert second.proof
    assert (broken.error, broken.seconds) == ("build", ())


def test_the_fastest_stay_for_the_final():
    task = conv()
    with Measurer(TARGET) as measurer:
        traces = [plain_trace(task), default_trace(task)]
        *measured, _ = measurer.measure(task, [*traces, "no trace"])
        best, other = (one.trace for one in sorted(measured, key=lambda one: one.latency))
        assert measurer.fastest(task, within=1e9) == [best, other]
        assert measurer.fastest(task, within=0.0) == [best]
        kept = measurer._libraries._fastest[task.workload.key].values()
        assert all(building.result.path.exists() for _, building in kept)


def test_a_change_of_speed_is_reported_once_and_measured_again(monkeypatch):
    warnings, pulses = [], iter([1.0, 2.0, 1.0, 1.0, 1.0, 1.5])
    monkeypatch.setattr(Health, "pulse", lambda *_: next(pulses))
    monkeypatch.setattr(measurers, "DRIFT", 0.15)
    task = conv()
    with Measurer(TARGET, warn=warnings.append) as measurer:
        for repeated in (1, 1, 2):
            (outcome,) = measurer.measure(task, [default_trace(task)])
            assert outcome.error == ""
            assert measurer.repeated == repeated
    (line,) = warnings
    assert "speed changed by 100%" in line


def test_batches_spread_over_the_boards(boards):
    task, other = conv(), task_of(programs.softmax(16, 100)["main"], "softmax", TARGET)
    with Measurer(TARGET, boards) as measurer:
        assert measurer.depth == 3
        submitted = [
            measurer.submit(each, [default_trace(each), plain_trace(each)])
            for each in (task, other, task, other)
        ]
        outcomes = [measurer.wait(one) for one in submitted]
    assert all(one.error == "" for batch in outcomes for one in batch)
    assert {one.device for batch in outcomes for one in batch} == {"left", "right"}


def test_a_lost_board_is_looked_for_and_the_batch_goes_on(boards):
    left, _ = boards
    task, warnings = conv(), []
    left.cut = True
    with Measurer(TARGET, [left], warn=warnings.append) as measurer:
        left.cut = True
        outcomes = measurer.measure(task, [default_trace(task)] * 2)
    assert [one.error for one in outcomes] == ["", ""]
    warnings = [
        warning for warning in warnings if "speed changed" not in warning
    ]  # on a busy machine
    assert warnings == ["left is away; looking for it again"]


def test_the_other_board_takes_over_from_one_that_stays_away(boards):
    left, _ = boards
    task, warnings = conv(), []
    with Measurer(TARGET, boards, warn=warnings.append) as measurer:
        left.cut, left.answers = True, False
        submitted = [measurer.submit(task, [default_trace(task)]) for _ in range(3)]
        outcomes = [measurer.wait(one)[0] for one in submitted]
    assert {one.device for one in outcomes} == {"right"}
    assert warnings[-1] == "left is away; nothing is measured on left any more"


def test_the_other_board_takes_over_from_one_that_comes_back_with_another_key(boards):
    left, _ = boards
    task, warnings = conv(), []
    with Measurer(TARGET, boards, warn=warnings.append) as measurer:
        left.cut, left.answers, left.absence = True, False, DeviceError("left has another key")
        submitted = [measurer.submit(task, [default_trace(task)]) for _ in range(3)]
        outcomes = [measurer.wait(one)[0] for one in submitted]
    assert {one.device for one in outcomes} == {"right"}
    assert [line for line in warnings if "speed changed" not in line] == [
        "left is away; looking for it again",
        "left has another key; nothing is measured on left any more",
    ]


def test_no_board_left_is_an_error_that_says_what_to_do(boards):
    left, _ = boards
    unfit, task = [], conv()
    with Measurer(TARGET, [left], unfit=lambda *args: unfit.append(args)) as measurer:
        left.cut, left.answers = True, False
        with pytest.raises(DeviceLost, match="no device is left to measure on: left is away"):
            measurer.measure(task, [default_trace(task)])
    assert unfit == []  # once it is back, the same command finds it


def test_a_board_that_is_lost_again_and_again_is_given_up(boards, monkeypatch):
    left, _ = boards
    unfit, task = [], conv()
    monkeypatch.setattr(left, "start", lambda: None)
    left.cut = True
    with (
        Measurer(TARGET, [left], unfit=lambda *args: unfit.append(args)) as measurer,
        pytest.raises(DeviceLost, match="no device is left"),
    ):
        measurer.measure(task, [default_trace(task)])
    assert unfit == [("left", "lost 3 times in a row; the last time: left is away")]


@pytest.mark.parametrize("pace", [0.0, 2.0])
def test_a_board_may_become_as_slow_as_its_user_accepts(boards, monkeypatch, pace):
    left, _ = boards
    left.pace, unfit = pace, []
    pulses = chain([1.0], repeat(3.5))
    monkeypatch.setattr(SiteRunner, "pulse", lambda *_: next(pulses))
    monkeypatch.setattr(health, "PAUSES", (0.0,))
    with Measurer(TARGET, [left], unfit=lambda *args: unfit.append(args)) as measurer:
        if pace:
            assert measurer.measure(conv(), [default_trace(conv())])[0].error == ""
            assert unfit == []
            return
        with pytest.raises(DeviceLost, match="in quarantine until `ansor-deploy devices doctor"):
            measurer.measure(conv(), [default_trace(conv())])
    assert unfit == [("left", "the reference kernel takes 3.5 times as long as at first")]


def tune(path, work):
    planned = plan_models(*intake.read([path], work), work)
    with work.measuring() as measurer:
        tune_plan(planned, pending(planned, work.request), work, measurer)


def test_what_was_measured_of_a_batch_whose_board_is_lost_is_kept(boards, monkeypatch, tmp_path):
    left, _ = boards
    monkeypatch.setattr(Health, "pulse", lambda *_: 1.0)
    weight = {"w": randn(0, 64, 64)}
    net = model([node("MatMul", "x w", "y")], {"x": (64, 64)}, constants=weight)
    onnx.save(net, tmp_path / "net.onnx")
    request = Request(TARGET, tmp_path / "r.db", Budget(trials=17))
    left.lives = 1 + CHUNK + 2
    with Registry.open(request.registry, write=True) as registry:
        work = Workspace(request, QuietReport(), registry, machine=Machine("left", (left,)))
        with pytest.raises(DeviceLost, match="no device is left"):
            tune(tmp_path / "net.onnx", work)
        assert registry.stats()["measurements"] == 1 + CHUNK


def test_a_batch_ends_with_its_time_and_keeps_what_has_run(boards):
    left, _ = boards
    traces = [default_trace(conv())] * 4
    with Measurer(TARGET, [left]) as measurer:
        assert len(measurer.wait(measurer.submit(conv(), traces), 0.0)) < len(traces)
        assert len(measurer.wait(measurer.submit(conv(), traces), 600.0)) == len(traces)


def test_a_time_that_is_over_before_anything_ran_is_no_error(boards, tmp_path):
    weight = {"w": randn(0, 64, 64)}
    net = model([node("MatMul", "x w", "y")], {"x": (64, 64)}, constants=weight)
    onnx.save(net, tmp_path / "net.onnx")
    request = Request(TARGET, tmp_path / "r.db", Budget(seconds=0.05))
    with Registry.open(request.registry, write=True) as registry:
        machine = Machine("left", (boards[0],))
        tune(tmp_path / "net.onnx", Workspace(request, QuietReport(), registry, machine=machine))
        assert registry.stats()["measurements"] <= 1


def test_what_was_measured_on_every_lost_board_is_kept(boards, monkeypatch, tmp_path):
    monkeypatch.setattr(Health, "pulse", lambda *_: 1.0)
    weights = {"v": randn(0, 64, 64), "w": randn(0, 64, 96)}
    nodes = [node("MatMul", "x v", "z"), node("MatMul", "z w", "y")]
    onnx.save(model(nodes, {"x": (64, 64)}, constants=weights), tmp_path / "net.onnx")
    request = Request(TARGET, tmp_path / "r.db", Budget(trials=34))
    for board in boards:
        board.lives = 1 + CHUNK + 2
    with Registry.open(request.registry, write=True) as registry:
        both = Machine("both", tuple(boards))
        work = Workspace(request, QuietReport(), registry, machine=both)
        with pytest.raises(DeviceLost, match="no device is left"):
            tune(tmp_path / "net.onnx", work)
        assert registry.stats()["measurements"] == 2 + 2 * CHUNK


def test_an_interrupted_search_for_a_board_ends_at_once(boards, monkeypatch):
    monkeypatch.setattr(sites, "RETURN_SECONDS", (3600,))
    left, _ = boards
    task, warnings = conv(), []
    with Measurer(TARGET, [left], warn=warnings.append) as measurer:
        left.cut = True
        measurer.submit(task, [default_trace(task)])
        while not warnings:
            time.sleep(0.01)


def test_a_board_that_fails_the_reference_kernel_is_given_up(boards, monkeypatch):
    left, _ = boards
    unfit, task = [], conv()
    monkeypatch.setattr(
        left, "call", lambda *_: (_ for _ in ()).throw(WorkerFailure("crash", "SIGILL"))
    )
    with Measurer(TARGET, boards, unfit=lambda *args: unfit.append(args)) as measurer:
        submitted = [measurer.submit(task, [default_trace(task)]) for _ in range(3)]
        outcomes = [measurer.wait(one)[0] for one in submitted]
    assert unfit == [("left", "SIGILL")]
    assert {one.device for one in outcomes} == {"right"}


def test_builds_for_a_board_overlap_its_runs(boards):
    left, _ = boards
    task = conv()
    with Measurer(TARGET, [left]) as measurer:
        measurer.measure(task, [default_trace(task)])
        first = measurer.submit(task, [default_trace(task)] * 8)
        second = measurer.submit(task, [default_trace(task)] * 2)
        measurer.wait(first)
        assert all(one.future.running() or one.future.done() for one in second.building)
        assert len(measurer.wait(second)) == 2


def test_a_board_that_became_far_slower_is_given_up(boards, monkeypatch):
    left, _ = boards
    unfit, task, times = [], conv(), chain([1.0, 1.0, 4.0, 1.0], repeat(4.0))
    monkeypatch.setattr(SiteRunner, "pulse", lambda *_: next(times))
    monkeypatch.setattr(health, "PAUSES", (0.0, 0.0))
    with Measurer(TARGET, [left], unfit=lambda *args: unfit.append(args)) as measurer:
        assert measurer.measure(task, [default_trace(task)])
        with pytest.raises(DeviceLost, match="no device is left"):
            measurer.measure(task, [default_trace(task)])
    assert unfit == [("left", "the reference kernel takes 4.0 times as long as at first")]
