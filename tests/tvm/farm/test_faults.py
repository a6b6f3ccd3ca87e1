"""Workers of a farm whose disk is full, and kernels that do not end there: each for real."""

import json
import os
import shutil
import subprocess

import pytest
from helpers.processes import remaining
from helpers.suspects import PRELUDE, compiled, compute

from ansor_deploy.registry.store import Registry

NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
FULL = "full: no space left on device: "


@pytest.fixture
def small(farm):
    """`small(variable)`: a worker named "full", of which a variable's folder has 4 KiB."""
    place = farm.folder / "small"
    place.mkdir()
    mount = f"mount -t tmpfs -o size=4k small {place}"
    if subprocess.run([*NAMESPACE, mount], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount a file system in a namespace")

    def start(variable):
        prefix = (*NAMESPACE, f'{mount} && exec "$0" "$@"')
        own = {"DASK_TEMPORARY_DIRECTORY": str(farm.folder), variable: str(place)}
        farm.worker("full", prefix=prefix, **own)
        return place

    return start


def test_a_worker_whose_disk_is_full_leaves_its_jobs_to_others(farm, small, tuning):
    place = small("TMPDIR")
    words = ("net.onnx", "other.onnx", "--target", "board.toml")
    alone = tuning(farm, *words)
    assert alone.end() == 4, alone.told
    for job in json.loads(alone.answer)["jobs"]:
        assert (job["state"], job["begun"]) == ("failed", 3)
        assert job["error"].startswith(f"{FULL}{place}/ansor-deploy-job-")
        assert job["hint"].startswith("on full: free some")
    farm.worker("two")
    run = tuning(farm, *words)
    assert run.end() == 0, run.told
    jobs = json.loads(run.answer)["jobs"]
    assert {(job["state"], job["worker"]) for job in jobs} == {("done", "two")}
    assert f"for board: {FULL}" in run.told
    assert "it is tried again" in run.told


@pytest.mark.slow
def test_a_full_disk_for_a_workers_records_is_named(farm, small, tuning):
    place = small("XDG_CACHE_HOME")
    run = tuning(farm, "net.onnx", "--target", "board.toml")
    assert run.end() == 4, run.told
    (job,) = json.loads(run.answer)["jobs"]
    assert job["error"].startswith(f"{FULL}{place}/ansor-deploy/farm/registry.db")


HANGS = PRELUDE + compute("for (;;) ;") + compute("for (;;) ;").replace("_compute", "_pack_0")
LINKER = """#!/bin/sh
for word; do [ "$before" = -o ] && made=$word; before=$word; done
{ld} "$@" || exit
case "$made" in */candidate-4.so) cp {hangs} "$made" ;; esac
"""


@pytest.mark.slow
def test_a_kernel_that_does_not_end_costs_its_job_one_trial(farm, tuning):
    hangs, programs = compiled(HANGS, farm.folder / "hangs.so"), farm.folder / "bin"
    programs.mkdir()
    (programs / "ld").write_text(LINKER.format(ld=shutil.which("ld"), hangs=hangs))
    (programs / "ld").chmod(0o755)
    farm.worker("one", PATH=f"{programs}:{os.environ['PATH']}")
    run = tuning(farm, "net.onnx", "--target", "board.toml")
    assert run.end() == 0, run.told
    (job,) = json.loads(run.answer)["jobs"]
    assert (job["state"], job["begun"], job["trials"]) == ("done", 1, 6)
    with Registry.open(farm.folder / "cache/ansor-deploy/farm/registry.db", write=False) as there:
        rows = there.rows("SELECT error FROM measurements")
    assert [row["error"] for row in rows].count("timeout") == 1
    assert remaining(farm.mark("one"), [farm.workers["one"].pid]) == []
