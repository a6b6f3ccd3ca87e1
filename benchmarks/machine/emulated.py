"""Instructions of an inference on arm64, emulated by QEMU, and counted by a plugin of QEMU.

Times under emulation mean nothing; the instructions executed are those of a real machine. The
Debian system is that of the tests' board (`tests/helpers/arm64.py`), with ONNX Runtime's wheel for
arm64. The plugin (`instructions.c`) is compiled for QEMU 7.2 or later; qemu-user-static takes no
plugins.
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

from helpers import arm64  # type: ignore[import-not-found]  # noqa: E402 - needs the path above

QEMU, CC = "qemu-aarch64", "gcc"
# /proc/cpuinfo of a Cortex-A53 under Linux.
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
    """Instructions of one run.

    by_lane, vectors: vector multiply-adds, with a lane of one vector as a factor or without.
    memory: instructions that load, store or prefetch.
    """

    all: int
    vectors: int
    by_lane: int
    memory: int


def missing() -> str:
    """Why nothing can be counted here, or "" if it can."""
    absent = [name for name in (QEMU, "gcc") if not shutil.which(name)]
    return (
        f"needs {', '.join(absent)}: apt-get install qemu-user gcc" if absent else arm64.missing()
    )


def retired(engine: str, model: Path, library: Path, folder: Path) -> tuple[Retired, np.ndarray]:
    """The instructions of an engine's run (`engines.py`) on one thread, and its output.

    library: built for arm64; the inputs follow from its manifest. folder: for temporary files.
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
    """A root folder with the system's files, and /proc/cpuinfo, which QEMU does not emulate.

    Other files are this machine's. Without /proc/cpuinfo ONNX Runtime crashes.
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
    """ONNX Runtime for arm64, in the version that is installed here."""
    release = version("onnxruntime")
    return arm64.wheels(f"onnxruntime-arm64-{release.replace('.', '-')}", f"onnxruntime=={release}")
