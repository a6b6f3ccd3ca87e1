"""Real kernels in real processes: what is right is timed, what is not becomes an outcome."""

import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import Future

import psutil
import pytest
import tvm
from helpers.kernels import ASTRAY, ENDLESS
from helpers.processes import wait_until_gone
from helpers.warm_workers import none_kept
from tvm import te, topi

from ansor_deploy.codegen.kernels.signature import signature
from ansor_deploy.errors import AnsorError
from ansor_deploy.measure import site_runner
from ansor_deploy.measure.builder import Building, BuildJob
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.model.relax.extract import _task
from ansor_deploy.model.tasks import Task
from ansor_deploy.runtime.tensors import seeded_arguments
from ansor_deploy.space.canonical_text import canonical_text, parse
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

TARGET = load_target("host", [shipped("targets")])
SIDE = 64


def task_of(func_or_text, name="fused_task") -> Task:
    text = func_or_text if isinstance(func_or_text, str) else canonical_text(func_or_text)
    return _task(name, text, parse(text), 1, TARGET)


def placeholder(name, *shape, dtype="float32"):
    return te.placeholder(shape, dtype=dtype, name=name)


def conv_relu():
    x, w, b = placeholder("x", 1, 14, 14, 32), placeholder("w", 3, 3, 32, 32), placeholder("b", 32)
    y = topi.nn.relu(topi.add(topi.nn.conv2d_nhwc(x, w, 1, 1, 1), b))
    return te.create_prim_func([x, w, b, y]).with_attr("layout_free_buffers", [1])


def two_matmuls_with_packed_weights():
    x, u, w = (placeholder(name, 32, 32) for name in "xuw")
    y = topi.matmul(topi.matmul(x, u), w)
    return te.create_prim_func([x, u, w, y]).with_attr("layout_free_buffers", [1, 2])


def softmax():
    x = placeholder("x", 16, 1000)
    return te.create_prim_func([x, topi.nn.softmax(x)])


def concat():
    parts = [placeholder(f"x{n}", 1, 7, 7, n) for n in (8, 16, 24)]
    return te.create_prim_func([*parts, topi.concatenate(parts, axis=3)])


def embedding():
    table, index = placeholder("table", 2, 48), placeholder("index", 1, 12, dtype="int64")
    return te.create_prim_func([table, index, topi.take(table, index, axis=0, mode="fast")])


def outputs_of_three_types():
    x = placeholder("x", 32, 32)
    y = te.compute((32, 32), lambda i, j: x[i, j] * 3, name="y")
    above = te.compute((32, 32), lambda i, j: y[i, j] > 0, name="above")
    whole = te.compute((32, 32), lambda i, j: y[i, j].astype("int32"), name="whole")
    return te.create_prim_func([x, y, above, whole])


def half_precision():
    x, w = placeholder("x", 16, 64, dtype="float16"), placeholder("w", 64, 32, dtype="float16")
    return te.create_prim_func([x, w, topi.matmul(x, w)])


def logarithm():
    x = placeholder("x", 1024)
    return te.create_prim_func([x, topi.log(x)])


def doubling():
    x = placeholder("x", SIDE, SIDE)
    return te.create_prim_func([x, te.compute((SIDE, SIDE), lambda i, j: x[i, j] * 2, name="y")])


def normalize(extent):
    """Divide by the row's sum: computed anew at every element, it takes its square of time."""
    x, k = placeholder("x", 4, extent), te.reduce_axis((0, extent), name="k")
    total = te.compute((4,), lambda i: te.sum(x[i, k], axis=k), name="total")
    y = te.compute((4, extent), lambda i, j: x[i, j] / total[i], name="y")
    return te.create_prim_func([x, y])


def default_trace(task):
    return dump(default_schedule(task.mod, TARGET).trace)


@pytest.fixture(scope="module")
def measurer():
    with Measurer(TARGET) as made:
        yield made


@pytest.mark.parametrize(
    "program",
    [
        conv_relu,
        two_matmuls_with_packed_weights,
        softmax,
        concat,
        embedding,
        outputs_of_three_types,
        half_precision,
        logarithm,
    ],
)
def test_the_default_schedule_is_measured_and_proved(measurer, program):
    task = task_of(program())
    (outcome,) = measurer.measure(task, [default_trace(task)])
    assert (outcome.error, outcome.message) == ("", "")
    assert 3 <= len(outcome.seconds) <= 10
    assert 0 < outcome.latency < 1
    assert outcome.proof == {"oracle": "default", "seed": 0, "max_abs_err": 0, "max_rel_err": 0}


def test_another_schedule_agrees_within_the_tolerance(measurer):
    task = task_of(conv_relu())
    plain = dump(tvm.s_tir.Schedule(task.mod).trace)
    slow, fast = measurer.measure(task, [plain, default_trace(task)])
    assert slow.error == fast.error == ""
    assert 0 <= slow.proof["max_rel_err"] < 1e-5
    assert slow.latency > fast.latency


@pytest.mark.parametrize("program", [conv_relu, two_matmuls_with_packed_weights])
def test_weights_are_packed_outside_the_timed_function(measurer, program):
    task = task_of(program())
    (built,) = measurer.builder.build([BuildJob(task.workload.text, "default")])
    built.path.unlink()
    assert [step["function"] for step in built.steps] == ["pack_0", "compute"]
    assert any(kind == "made" for kind, _ in built.steps[-1]["arguments"])


def test_a_clearly_slower_candidate_runs_once(measurer):
    task = task_of(conv_relu())
    (outcome,) = measurer.measure(task, [default_trace(task)], best=1e-9)
    assert len(outcome.seconds) == 1


def swapping_trace(task):
    """Reads its input transposed: legal to TVM, and another function."""
    schedule = tvm.s_tir.Schedule(task.mod)
    (name,) = [schedule.get(b).name_hint for b in schedule.get_child_blocks(root(schedule))]
    schedule.transform_layout(name, ("read", 0), lambda i, j: (j, i))
    return dump(schedule.trace)


def root(schedule):
    return schedule.get_sblock("root")


def test_wrong_output_is_caught_and_not_timed(measurer):
    task = task_of(doubling(), "fused_doubling")
    wrong, right = measurer.measure(task, [swapping_trace(task), default_trace(task)])
    assert (wrong.error, wrong.seconds) == ("wrong-output", ())
    assert wrong.proof["max_abs_err"] > 0.1
    assert wrong.proof["oracle"] == "plain"
    assert right.error == ""


def test_the_plain_program_overrules_a_wrong_reference(measurer):
    task = task_of(te_with_extent(48))
    (built,) = measurer.builder.build([BuildJob(task.workload.text, "trace", swapping_trace(task))])
    wrong: Future = Future()
    wrong.set_result({"path": str(built.path), "steps": built.steps})
    measurer._libraries._references[task.workload.key, "default"] = Building(wrong, built.path)
    (outcome,) = measurer.measure(task, [default_trace(task)])
    assert outcome.error == ""
    assert outcome.proof["oracle"] == "plain"


def te_with_extent(extent):
    x = placeholder("x", extent, extent)
    return te.create_prim_func([x, te.compute((extent, extent), lambda i, j: x[i, j] + 1)])


def test_a_library_that_cannot_be_loaded_is_a_load_error(measurer):
    task = task_of(doubling())
    (built,) = measurer.builder.build([BuildJob(task.workload.text, "default")])
    built.path.write_bytes(b"no library")
    assert runner_of(measurer).run(task, built, "", best=1.0).error == "load"


def runner_of(measurer):
    """The only site's, as long as nothing is measured."""
    runner = measurer._lent._free.get()
    measurer._lent._free.put(runner)
    return runner


def test_traces_that_do_not_fit_are_build_errors(measurer):
    task, other = task_of(softmax()), task_of(conv_relu())
    traces = [default_trace(other), "no trace", "[]", default_trace(task)]
    outcomes = measurer.measure(task, traces)
    assert [outcome.error for outcome in outcomes] == ["build", "build", "build", ""]
    assert [outcome.trace for outcome in outcomes] == traces
    assert all(outcome.message for outcome in outcomes[:3])


def in_place_of_doubling(measurer, text):
    """Run the program of a text as if it were a candidate of `doubling`."""
    task = task_of(doubling())
    assert measurer.measure(task, [default_trace(task)])[0].error == ""
    (built,) = measurer.builder.build([BuildJob(text, "plain")])
    outcome = runner_of(measurer).run(task, built, "", best=1e-6)
    return outcome, measurer.measure(task, [default_trace(task)])


def test_a_hung_kernel_is_killed_and_the_next_runs(measurer, monkeypatch):
    monkeypatch.setattr(site_runner, "LEAST_SECONDS", 1.0)
    hung, (after,) = in_place_of_doubling(measurer, ENDLESS)
    assert (hung.error, hung.seconds) == ("timeout", ())
    assert "1 s" in hung.message
    assert after.error == ""


def test_a_crashing_kernel_is_an_outcome_and_the_next_runs(measurer):
    crashed, (after,) = in_place_of_doubling(measurer, ASTRAY)
    assert (crashed.error, crashed.seconds) == ("crash", ())
    assert crashed.message.startswith("SIGSEGV")
    assert after.error == ""


def test_a_schedule_that_takes_for_ever_is_killed(measurer, monkeypatch):
    monkeypatch.setattr(site_runner, "LEAST_SECONDS", 3.0)
    task = task_of(normalize(1 << 19))
    schedule = tvm.s_tir.Schedule(task.mod)
    total, divide = schedule.get_child_blocks(root(schedule))
    schedule.compute_at(total, schedule.get_loops(divide)[1])
    outcomes = measurer.measure(task, [dump(schedule.trace), default_trace(task)])
    assert [outcome.error for outcome in outcomes] == ["timeout", ""]


def test_without_a_reference_nothing_counts_as_measured(measurer, monkeypatch):
    monkeypatch.setattr(site_runner, "LEAST_SECONDS", 0.5)
    monkeypatch.setattr(site_runner, "PLAIN_SECONDS", 0.5)
    monkeypatch.setattr(site_runner, "MOST_SECONDS", 1.0)
    monkeypatch.setattr(measurer.builder, "_timeout", 2.0)
    task = task_of(ENDLESS)
    outcomes = measurer.measure(task, [dump(tvm.s_tir.Schedule(task.mod).trace)])
    assert [outcome.error for outcome in outcomes] == ["timeout"]
    assert "no reference" in outcomes[0].message


def test_indices_stay_inside_the_table():
    spec = signature(task_of(embedding()).mod)
    assert (spec.bound, spec.outputs) == (2, (2,))
    _, indices, _ = seeded_arguments(spec, seed=1)
    assert set(indices.ravel()) == {0, 1}


def test_inputs_follow_from_the_seed():
    spec = signature(task_of(conv_relu()).mod)
    assert spec.reduction == 288
    first, again, other = (seeded_arguments(spec, seed)[0] for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


def test_a_machine_without_a_linker_is_one_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(AnsorError, match="no linker"), Measurer(TARGET):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_measurement_leaves_a_measurer_that_works(measurer):
    task = task_of(softmax())
    before = signal.signal(signal.SIGALRM, raise_interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(KeyboardInterrupt):
        measurer.measure(task, [default_trace(task)] * 64)
    signal.signal(signal.SIGALRM, before)
    (outcome,) = measurer.measure(task, [default_trace(task)])
    assert outcome.error == ""


def raise_interrupt(*_):
    raise KeyboardInterrupt


def test_nothing_is_left_after_an_exception(tmp_path, monkeypatch):
    none_kept(monkeypatch)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    task = task_of(softmax())
    seen = []
    with pytest.raises(KeyboardInterrupt):
        measure_and_be_interrupted(task, seen)
    assert not any(psutil.pid_exists(pid) for pid in seen)
    assert list(tmp_path.iterdir()) == []


def measure_and_be_interrupted(task, seen):
    with Measurer(TARGET) as measurer:
        assert measurer.measure(task, [default_trace(task)])[0].error == ""
        seen += [
            worker._process.pid
            for worker in [measurer.sites[0]._worker, *measurer.builder._here.workers]
        ]
        assert all(psutil.pid_exists(pid) for pid in seen)
        raise KeyboardInterrupt


ABANDONED = """
import time
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target
measurer = Measurer(load_target("host", [shipped("targets")])).__enter__()
measurer._health._kernel.result  # its builder is in nobody's way now
workers = [measurer.sites[0]._worker, *measurer.builder._here.workers]
print(*(worker._process.pid for worker in workers), flush=True)
for worker in workers:
    worker._begin("time:sleep", 600)
print("busy", flush=True)
time.sleep(600)
"""


def test_workers_die_with_a_killed_parent(tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", ABANDONED], env=env, stdout=subprocess.PIPE, text=True
    )
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert parent.stdout.readline() == "busy\n"
    assert pids
    parent.kill()
    parent.wait()
    wait_until_gone(pids)


def test_kernels_run_on_all_the_cores_of_the_target(measurer):
    assert (
        measurer.sites[0].call("ansor_deploy.devices.library_calls:threads", {}, 5) == TARGET.cores
    )
