"""Instructions of an inference on an arm64 machine that QEMU plays, counted by a plugin of QEMU's.

How long code takes there says nothing; which instructions are executed is what a real one executes.
Debian is that of the tests' board (`tests/helpers/arm64.py`), with ONNX Runtime's wheel for arm64.
The plugin (`instructions.c`) is compiled for QEMU 7.2 or later; qemu-user-static takes no plugins.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

_HERE = Path(__file__).resolve().parent
_REPOSITORY = _HERE.parents[1]
sys.path.append(str(_REPOSITORY / "tests"))

from helpers import arm64  # type: ignore[import-not-found]  # noqa: E402 - it lies there

QEMU, CC = "qemu-aarch64", "gcc"
# What Linux says of a Cortex-A53 in /proc/cpuinfo.
PROCESSOR = """processor\t: {}
Features\t: fp asimd evtstrm crc32 cpuid
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd03
CPU revision\t: 4

"""


@dataclass(frozen=True)
class Retired:
    """Instructions of one run. by_lane, vectors: multiply-adds of vectors, by a lane of one or not.

    memory: instructions that load, store or prefetch.
    """

    all: int
    vectors: int
    by_lane: int
    memory: int


def missing() -> str:
    """Why nothing can be counted here; "" where it can."""
    absent = [name for name in (QEMU, "gcc") if not shutil.which(name)]
    return (
        f"needs {', '.join(absent)}: apt-get install qemu-user gcc" if absent else arm64.missing()
    )


def retired(engine: str, model: Path, library: Path, folder: Path) -> tuple[Retired, np.ndarray]:
    """What a run of an engine (`engines.py`) takes on one thread, and the output that it gives.

    library: that is built for arm64, from whose manifest the inputs follow. folder: to work in.
    """
    counts, output = folder / f"{engine}.txt", folder / f"{engine}.npy"
    root = _root(folder / "root")
    words = [QEMU, "-cpu", arm64.CPU, "-L", str(root)]
    words += ["-plugin", f"{_plugin(folder)},out={counts}"]
    words += [str(root / "usr/bin/python3"), "-m", "benchmarks.machine.marked"]
    paths = [_REPOSITORY, arm64.site_packages(), _onnxruntime()]
    settings = {"PYTHONPATH": ":".join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
    words += [engine, str(model), str(library), str(output)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=os.environ | settings)
    before, after = (map(int, line.split()) for line in counts.read_text().splitlines())
    return Retired(*(b - a for a, b in zip(before, after, strict=True))), np.load(output)


def _root(folder: Path) -> Path:
    """The system's files, and what its kernel says of the processor, of which QEMU says nothing.

    What is not there is this machine's; without the processor ONNX Runtime crashes.
    """
    (folder / "proc").mkdir(parents=True, exist_ok=True)
    cores = range(os.cpu_count() or 1)
    (folder / "proc/cpuinfo").write_text("".join(PROCESSOR.format(one) for one in cores))
    for name in ("bin", "etc", "lib", "usr"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(arm64.base_root() / name)
    return folder


def _plugin(folder: Path) -> Path:
    made = folder / "instructions.so"
    flags = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden"]
    subprocess.run([CC, *flags, str(_HERE / "instructions.c"), "-o", str(made)], check=True)
    return made


def _onnxruntime() -> Path:
    """ONNX Runtime for arm64, of the version that is installed here."""
    release = version("onnxruntime")
    return arm64.wheels(f"onnxruntime-arm64-{release.replace('.', '-')}", f"onnxruntime=={release}")
