"""`registry show --script` prints the program that a build would compile."""

import pytest
import tvm
from helpers import built
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.programs import PROGRAMS
from tvm_ffi import structural_equal

from ansor_deploy._tvm import VERSION
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.registry.record import Provenance, Record
from ansor_deploy.registry.store import Registry
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump

TARGET = built.with_vectors(32)
PROOF = {"oracle": "plain", "seed": 0, "max_abs_err": 0.0, "max_rel_err": 0.0}


@pytest.fixture(scope="module")
def scheduled():
    task = task_of(PROGRAMS["conv residual"]()["main"], "conv_residual", TARGET)
    return task, default_schedule(task.mod, TARGET)


@pytest.fixture
def path(tmp_path, scheduled):
    task, schedule = scheduled
    made = [
        Provenance("0.2.0", tvm, "ansor", "host", 0, "2026-01-31T12:00:00+00:00")
        for tvm in (VERSION, "0.26.0")
    ]
    best = Record(task.key, dump(schedule.trace), (2e-3,), PROOF, made[0])
    slower = Record(task.key, "[[],[]]", (3e-3,), PROOF, made[0])
    older = Record(task.key, "[[],[]]", (1e-3,), PROOF, made[1])
    with Registry.open(tmp_path / "registry.db") as registry:
        registry.add_target(TARGET)
        registry.add_workloads([task.workload])
        registry.add_batch([], [best, slower, older])
        registry.add_model("ab" * 32, "net.onnx", [(task.key, 1)])
    return tmp_path / "registry.db"


def show(path, key):
    return answer(path.parent, "registry", "show", key, "--script", "--registry", path)


def test_the_script_is_the_best_record_s_program(path, scheduled):
    task, schedule = scheduled
    found = show(path, task.key.workload[:10])
    assert structural_equal(tvm.script.from_source(found["script"]), schedule.mod)
    with Registry.open(path, write=False) as registry:
        (best, slower) = registry.top(task.key, VERSION, 2)
    assert found["record"] == best.id
    assert structural_equal(tvm.script.from_source(show(path, slower.id)["script"]), task.mod)
    words = ("registry", "show", best.id, "--script", "--registry", path)
    assert program(path.parent, *words).stdout == f"{found['script']}\n"


def test_a_target_without_a_record_has_no_script(path, scheduled):
    key = scheduled[0].key.workload
    words = ("registry", "show", key, "--script", "--target", "v100", "--registry", path)
    refused(program(path.parent, *words), 2, "no record made with TVM")
