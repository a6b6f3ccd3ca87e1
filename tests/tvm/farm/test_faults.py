"""Workers of a farm whose disk is full, and kernels that do not end there: each for real."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from helpers.processes import remaining
from helpers.suspects import PRELUDE, compiled, compute

from ansor_deploy.errors import MachineError
from ansor_deploy.registry.store import Registry
from ansor_deploy.system.cluster import open_farm
from ansor_deploy.system.machine_fault import about

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


def test_a_worker_whose_disk_is_full_leaves_builds_to_others(farm, small):
    place, warned = small("TMPDIR"), []
    with open_farm(farm.address, warned.append) as executor:
        with pytest.raises(MachineError, match=f"{FULL}{place}/") as caught:
            executor.submit(written, 5000).result()
        assert caught.value.hint.startswith("on full: free some")
        assert warned == []  # the error says it
    farm.worker("two")
    with open_farm(farm.address, warned.append) as executor:
        calls = [executor.submit(written, 5000) for _ in range(8)]
        assert {call.result() for call in calls} == {"two"}
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result()
    assert len(warned) == 1
    assert warned[0].startswith(f"the farm goes on without {FULL}{place}/")


def written(size):
    """On a worker: its name, after a temporary file of so many bytes was written."""
    from distributed import get_worker  # loads all of Dask

    with tempfile.TemporaryDirectory() as folder, about(path := Path(folder, "file")):
        path.write_bytes(bytes(size))
    return str(get_worker().name)


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
