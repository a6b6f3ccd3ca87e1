"""A record that makes no code gives way to the default schedule, and no build tries it again."""

import json

import onnx
import pytest
from helpers import registry_samples
from helpers.cli_inside import program
from helpers.graphs import model, node, randn

from ansor_deploy._tvm import VERSION
from ansor_deploy.model.prepare import prepare
from ansor_deploy.registry.instructions import check_trace
from ansor_deploy.registry.lock_text import write_lock
from ansor_deploy.registry.record import Record
from ansor_deploy.registry.store import Registry
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

RPI3 = ("--target", "rpi3", "--no-device", "--trials", "0")


@pytest.fixture
def folder(tmp_path):
    """A folder with a model that builds."""
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    onnx.save(
        model(nodes, {"x": (8, 32)}, constants={"w": randn(0, 32, 32)}), tmp_path / "net.onnx"
    )
    return tmp_path


def build(folder, *words):
    return program(folder, "build", "net.onnx", "-o", "out/net.so", "--registry", "r.db", *words)


def claim_that_does_not_lower(folder):
    """A claim for a machine that is not at hand: it replays, and TVM fails on the program."""
    target = load_target("rpi3", [shipped("targets")])
    (task,) = prepare(folder / "net.onnx", target).tasks
    schedule = default_schedule(task.mod, target)
    (packing,) = (block for block in blocks_of(schedule) if is_packing(schedule, block))
    (user,) = schedule.get_consumers(packing)
    schedule.compute_at(packing, schedule.get_loops(user)[0], preserve_unit_loops=True)
    proof = {"oracle": "default", "seed": 0, "max_abs_err": 0.0, "max_rel_err": 0.0}
    where = registry_samples.provenance(VERSION)
    trace = dump(schedule.trace)
    check_trace(trace, target.kind)
    return target, task, Record(task.key, trace, (1e-4,), proof, where, claimed=True)


def blocks_of(schedule):
    return schedule.get_child_blocks(schedule.get_sblock("root"))


def is_packing(schedule, block):
    return "meta_schedule.layout_rewrite_preproc" in schedule.get(block).annotations


def test_a_claim_that_makes_no_code_is_put_aside(folder):
    target, task, claim = claim_that_does_not_lower(folder)
    with Registry.open(folder / "r.db") as registry:
        registry.add_target(target)
        registry.add_workloads([task.workload])
        registry.add_batch([], [claim])
    result = build(folder, *RPI3)
    assert result.returncode == 0, result.stderr
    assert "TVM cannot lower it" in result.stderr
    (made,) = json.loads((folder / "out" / "net.json").read_text())["tasks"]
    assert (made["record"], made["fallback"]) == ("default", "the default schedule")
    with Registry.open(folder / "r.db", write=False) as registry:
        (why,) = registry.measurements(target.fingerprint, task.key)
        assert (why.error, why.trace) == ("build", claim.trace)
        assert "layout rewrite" in why.message
    assert "up to date" in build(folder, *RPI3).stdout


@pytest.mark.slow
def test_a_frozen_build_survives_a_lock_that_makes_no_code(folder):
    target, task, claim = claim_that_does_not_lower(folder)
    write_lock(folder / "r.lock", target, VERSION, [claim], set(), {task.key.workload: "x"})
    result = build(folder, *RPI3[:3], "--frozen", "--lock", "r.lock")
    assert result.returncode == 0, result.stderr
    assert "TVM cannot lower it" in result.stderr
