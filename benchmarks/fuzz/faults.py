"""Builds that are killed, or run out of disk: the registry stays intact, and a new build succeeds.

Builds run in processes of their own, as for a user. A small disk is a file system in memory, in
namespaces of the process, which needs no root.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.options import crowd

PROGRAM = (sys.executable, "-m", "ansor_deploy")
COMMAND = (
    "build", "net.onnx", "--target", "./own.toml", "--registry", "records.db", "--trials", "16",
    "--min-impact", "0%",
)  # fmt: skip
LONGEST = 12.0  # seconds until a kill; such a build takes about as long
_ENOUGH = 60.0  # seconds after which a command counts as hanging


def killed(seed: int, folder: Path) -> dict[str, Any]:
    """Kill a build at a random time; then the registry is intact, and a new build succeeds."""
    after = random.Random(seed).uniform(0.3, LONGEST)
    began = time.perf_counter()
    build = _start(folder, COMMAND)
    try:
        build.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        os.killpg(build.pid, signal.SIGKILL)
        build.communicate()
    return {"what": f"killed after {after:.2f} s", **_afterwards(folder, began)}


def full(seed: int, folder: Path) -> dict[str, Any]:
    """Build with a small disk for one kind of files, then again with enough space.

    The files are temporary ones, the outputs or the cache.
    """
    chance = random.Random(seed)
    size = 1 << chance.randrange(12, 24)
    where = chance.choice(("temporary", "output", "cache"))
    began = time.perf_counter()
    build = _start(folder, (), script=_small_disk(where, size))
    said = _communicate(build)
    found = {
        "what": f"{size >> 10} KiB for {where}: exit {build.returncode}",
        **_afterwards(folder, began),
    }
    if build.returncode == 70 or "Traceback" in said:
        return {**found, "code": build.returncode, "said": said[-1000:]}
    return found


def _small_disk(where: str, size: int) -> str:
    """A shell command that builds with a small disk for one kind of files."""
    build = " ".join((*PROGRAM, *COMMAND))
    mount = f"mount -t tmpfs -o size={size} small small"
    uses = {
        "temporary": f"TMPDIR=$PWD/small {build}",
        "cache": f"XDG_CACHE_HOME=$PWD/small {build}",
        "output": f"{build} -o small/net.so",
    }[where]
    return f"mkdir -p small && {mount} && {uses}"


def _start(folder: Path, words: tuple[str, ...], script: str = "") -> subprocess.Popen[str]:
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    return subprocess.Popen(
        command if script else [*PROGRAM, *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "XDG_STATE_HOME": str(folder)},
    )


def _communicate(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=_ENOUGH * crowd())[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return "hangs: " + process.communicate()[1]


def _afterwards(folder: Path, began: float) -> dict[str, Any]:
    """The results of two commands after a fault: a check of the registry, and the build again."""
    for words in (("registry", "verify", "--registry", "records.db"), COMMAND):
        if words is not COMMAND and not (folder / "records.db").exists():
            continue
        process = _start(folder, words)
        said = _communicate(process)
        if process.returncode:
            break
    return {
        "code": process.returncode,
        "said": said[-1000:],
        "traceback": "Traceback (most recent" in said,
        "seconds": 0.0 if "hangs" not in said else time.perf_counter() - began,
        "megabytes": 0.0,
    }
