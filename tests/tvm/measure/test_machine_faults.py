"""The machine fails under a build or a run: nothing is learnt of the candidate."""

import os
import shutil
import subprocess
from pathlib import Path

import onnx
import pytest
from helpers.cli_inside import answer, program
from helpers.cli_process import refused
from helpers.graphs import model, node, randn
from helpers.suspects import COMPUTE, PRELUDE, TARGET, compiled, compute

from ansor_deploy.codegen import linker
from ansor_deploy.errors import MachineError
from ansor_deploy.measure import site_runner
from ansor_deploy.measure.builder import BuildJob, Built
from ansor_deploy.measure.outcome import INFRASTRUCTURE
from ansor_deploy.measure.site_runner import SiteRunner
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.worker import WorkerFailure

TUNE = ("tune", "net.onnx", "--registry", "r.db", "--trials", "2")
ASSETS = Path(__file__).parents[2] / "assets"


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory):
    """What to preload for a disk that is full where a path holds DISK_FULL."""
    path = tmp_path_factory.mktemp("disk") / "full.so"
    source = ASSETS / "failing_disk.c"
    command = [shutil.which("cc"), "-shared", "-fPIC", "-o", path, source, "-ldl"]
    subprocess.run(command, check=True)
    return path


def test_a_full_disk_is_no_fact_about_a_schedule(tmp_path, full_disk):
    weight = {"w": randn(0, 32, 32)}
    net = model([node("MatMul", "x w", "y")], {"x": (32, 32)}, constants=weight)
    onnx.save(net, tmp_path / "net.onnx")
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    full = {"LD_PRELOAD": str(full_disk), "DISK_FULL": "ansor-deploy-measure-"}
    stopped = program(tmp_path, *TUNE, env={**environment, **full})
    refused(stopped, 9, "no space left on device: ", "(TMPDIR)", "the same command resumes")
    with Registry.open(tmp_path / "r.db", write=False) as registry:
        assert registry.stats()["measurements"] == 0
        assert registry.rows("SELECT * FROM searches") == []
    assert answer(tmp_path, *TUNE)["trials"] == 2


def test_no_file_is_left_to_a_library_that_ends_the_process_on_a_full_disk(tmp_path, full_disk):
    weight = {"w": randn(0, 32, 32)}
    net = model([node("MatMul", "x w", "y")], {"x": (32, 32)}, constants=weight)
    onnx.save(net, tmp_path / "net.onnx")
    full = {**os.environ, "LD_PRELOAD": str(full_disk), "DISK_FULL": "devc.o"}
    words = ("build", "net.onnx", "-o", "net.so", "--registry", "r.db", "--trials", "0")
    built = program(tmp_path, *words, env=full)
    assert built.returncode == 0, built.stderr


def fake(folder, monkeypatch, name, script):
    """A program of that name comes first on the path."""
    folder.mkdir()
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


LINKERS = {
    "killed": ("kill -9 $$", "the linker ld was killed"),
    "out of space": ("echo 'final link: No space left on device' >&2; exit 1", "no space left"),
    "out of files": ("echo 'ld: x.o: Too many open files' >&2; exit 1", "too many open files"),
}


@pytest.mark.parametrize(("script", "says"), LINKERS.values(), ids=LINKERS)
def test_a_linker_that_the_machine_stops_is_the_machines(tmp_path, monkeypatch, script, says):
    fake(tmp_path / "bin", monkeypatch, "ld", script)
    with pytest.raises(MachineError, match=says):
        linker.link_candidate([b""], tmp_path / "it.so", TARGET)


def test_a_compiler_that_is_killed_as_it_links_is_the_machines(tmp_path, monkeypatch):
    fake(tmp_path / "bin", monkeypatch, "g++", "echo 'collect2: fatal error: ld terminated with "
         "signal 9 [Killed]' >&2; exit 1")  # fmt: skip
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(MachineError, match="was killed"):
        linker._link(linker._command(TARGET), tmp_path / "it.so", [])


def test_a_candidate_that_is_killed_from_outside_is_none_of_the_schedules(court):
    with pytest.raises(MachineError, match="killed twice"):
        court.library(compute("raise(SIGKILL);"))
    assert court.right().error == ""


def test_a_candidate_that_was_too_late_gets_another_chance(court, monkeypatch):
    monkeypatch.setattr(site_runner, "LEAST_SECONDS", 1.0)
    mark = court.measurer.sites[0].scratch("mark")  # no other folder may be written to
    once = f'if (access("{mark}", F_OK)) {{ fclose(fopen("{mark}", "w")); for (;;) pause(); }}'
    assert court.library(compute(f"{once}  doubled(x, y);"), best=1e-3).error == ""
    assert court.library(compute("for (;;) pause();"), best=1e-3).error == "timeout"


def test_of_libraries_that_fail_in_turns_nothing_is_learnt(court, tmp_path):
    (built,) = court.measurer.builder.build([BuildJob(court._doubling.workload.text, "default")])
    path = compiled(PRELUDE + compute("if (calls > 3) abort(); doubled(x, y);"), tmp_path / "a.so")
    both = [built, Built(path, (COMPUTE,))]
    found = court._runner.head_to_head(court._doubling, both, ["right", "crashes"])
    assert [one.error for one in found] == [INFRASTRUCTURE] * 2


def test_this_machine_unfit_is_no_lost_device(court, monkeypatch):
    def fails(*_):
        raise WorkerFailure("timeout", "killed after 30 s")

    monkeypatch.setattr(SiteRunner, "pulse", fails)
    with pytest.raises(MachineError, match="does not run the reference kernel: killed after 30 s"):
        court.right()
