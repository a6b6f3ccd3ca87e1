"""Another architecture's libraries, run here by QEMU's user mode: numbers count, times do not.

That takes QEMU, a C compiler for the architecture with its C and C++ libraries, and the wheels
that `devices install` fetched. Where one is lacking there is no emulator, and no error either.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..artifact.files import json_bytes
from ..errors import AnsorError, UsageError, VerificationError
from ..runtime.model import OUT_OF_RANGE, RANGE_HINT, choose, interfaces
from ..runtime.tensors import numpy_dtype
from ..system.host import architecture
from ..system.machine_fault import errno_in, fault, killed
from ..target import Target
from .wheels import runtime_libraries, wheels_folder

RUN_SECONDS = 600.0
_BUILD_SECONDS = 60.0
_PROGRAM = Path(__file__).with_name("run_once.c")
_API = Path(__file__).parents[1] / "integrations" / "c"


@dataclass(frozen=True)
class Emulator:
    """A program that runs another architecture's code. name: for a manifest.

    command: runs `run_once.c`. folder: for its files; it goes with the emulator.
    """

    name: str
    command: tuple[str, ...]
    folder: Path

    def load(self, path: Path, manifest: dict[str, Any]) -> EmulatedModel:
        """A library with its manifest, ready to be called."""
        return EmulatedModel(self, path, manifest)


class EmulatedModel:
    """A library that is called as `runtime.Model` is.

    VerificationError where it does not run; MachineError where that is this machine's.
    """

    def __init__(self, emulator: Emulator, path: Path, manifest: dict[str, Any]) -> None:
        self.interfaces = interfaces(manifest)
        self._emulator, self._path = emulator, path
        self._place = emulator.folder / "model.so"
        self._place.unlink(missing_ok=True)
        self._place.symlink_to(path.resolve())
        known = {**manifest, "artifact": {"bytes": path.stat().st_size}}
        self._place.with_suffix(".json").write_bytes(json_bytes(known))

    def __call__(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Run once, in the shapes that the inputs have.

        UsageError where it has none such, or where the inputs hold an index that is out of range.
        """
        chosen = choose(self._path, self.interfaces, inputs)
        takes, gives = self.interfaces[chosen].inputs, self.interfaces[chosen].outputs
        given, made = self._emulator.folder / "inputs", self._emulator.folder / "outputs"
        given.write_bytes(b"".join(inputs[info.name].tobytes() for info in takes))
        self._run(str(self._place), str(given), str(made), str(chosen))
        data, place, outputs = made.read_bytes(), 0, {}
        for info in gives:
            kind, size = numpy_dtype(info.dtype), int(np.prod(info.shape, dtype=np.int64))
            values = np.frombuffer(data, kind, size, place)
            outputs[info.name] = values.reshape(info.shape)
            place += values.nbytes
        return outputs

    def _run(self, *words: str) -> None:
        try:
            done = _done(*self._emulator.command, *words, seconds=RUN_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise self._fails(f"no end after {RUN_SECONDS:.0f} s") from error
        if done.returncode == -signal.SIGKILL:
            raise killed(f"{self._emulator.name} was killed")
        if done.returncode and (number := errno_in(done.stderr)) is not None:
            raise fault(number, self._emulator.folder)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            if said and (index := OUT_OF_RANGE.search(said[-1])):
                raise UsageError(index[0], RANGE_HINT, self._path)
            raise self._fails(said[-1] if said else f"it ended with {done.returncode}")

    def _fails(self, why: str) -> VerificationError:
        return VerificationError(
            f"the library does not run under {self._emulator.name}: {why}",
            "build with --trials 0 and an empty --registry to see whether a record is wrong, "
            "and report it",
        )


@contextmanager
def open_emulator(target: Target) -> Iterator[Emulator | None]:
    """What runs a target's code, where that is of another architecture; None if nothing does."""
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder:
        yield _emulator(target, Path(folder))


def _emulator(target: Target, folder: Path) -> Emulator | None:
    arch = architecture(target.triple)
    name = f"qemu-{arch}"
    qemu = shutil.which(name) or shutil.which(f"{name}-static")
    compiler = shutil.which(f"{arch}-linux-gnu-gcc")
    if arch == architecture() or not (qemu and compiler):
        return None
    try:
        if not runtime_libraries(arch, wheels_folder(), folder):
            return None
        program = _compiled(compiler, folder)
        root = _done(compiler, "-print-file-name=libc.so.6", seconds=_BUILD_SECONDS).stdout.strip()
        known = _done(qemu, "-cpu", "help", seconds=_BUILD_SECONDS).stdout.split()
        cpu = target.cpu if target.cpu in known else "max"
        where = str(Path(root).resolve().parents[1])
        found = Emulator(name, (qemu, "-L", where, "-cpu", cpu, str(program)), folder)
        said = _done(*found.command, seconds=_BUILD_SECONDS).stderr
    except (AnsorError, OSError, IndexError, subprocess.SubprocessError):
        return None
    return found if said.startswith("usage: run-once") else None


def _compiled(compiler: str, folder: Path) -> Path:
    """The program that runs a library; SubprocessError where the compiler cannot make one."""
    ffi = find_spec("tvm_ffi")
    packages = (ffi.submodule_search_locations or [""])[0] if ffi else ""
    program, headers = folder / "run-once", (_API, Path(packages, "include"))
    line = [compiler, "-O1", *(f"-I{each}" for each in headers)]
    line += [str(_PROGRAM), str(_API / "ansor_deploy.c"), "-o", str(program), f"-L{folder}"]
    line += ["-ltvm_runtime", "-ltvm_ffi", f"-Wl,-rpath,{folder}", "-Wl,--allow-shlib-undefined"]
    subprocess.run(line, capture_output=True, check=True, timeout=_BUILD_SECONDS)
    return program


def _done(*words: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """A command's end. Nothing of this process's environment reaches what is emulated."""
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={},
        timeout=seconds,
        check=False,
    )
