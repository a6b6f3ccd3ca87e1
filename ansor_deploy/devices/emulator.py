"""Run another architecture's libraries here by QEMU's user mode, for their outputs, not for times.

This needs QEMU, a C compiler for the architecture with its C and C++ libraries, and the wheels that
a board's set-up fetched. Where any of them is missing, there is no emulator, and no error.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import AnsorError, UsageError, VerificationError
from ..runtime.batches import Arrays
from ..runtime.fit import choose, fitting
from ..runtime.interface import declared, interfaces, of_true_size, ranges
from ..runtime.out_of_range import OUT_OF_RANGE, RANGE_HINT
from ..runtime.steps import Steps
from ..runtime.tensors import room_for
from ..system.host import architecture
from ..system.machine_fault import errno_in, fault, killed
from ..target import Target
from .c_runtime import PROGRAM, c_compiler, c_runtime
from .wheels import wheels_folder

RUN_SECONDS = 600.0
_LOOK_SECONDS = 60.0


@dataclass(frozen=True)
class Emulator:
    """A program that runs another architecture's code. name: for a manifest.

    command: runs the program of `c_runtime.py`. folder: for its files; removed with the emulator.
    """

    name: str
    command: tuple[str, ...]
    folder: Path

    def load(self, path: Path, manifest: dict[str, Any]) -> EmulatedModel:
        """A library with its manifest, ready to be called."""
        return EmulatedModel(self, path, manifest)


class EmulatedModel:
    """A library that is called like a `runtime.Model`.

    VerificationError where it does not run; MachineError where this machine is at fault.
    """

    def __init__(self, emulator: Emulator, path: Path, manifest: dict[str, Any]) -> None:
        self.interfaces, self._called = interfaces(manifest), declared(manifest)
        self.batches = ranges(manifest, self._called)
        self._emulator, self._path = emulator, path
        self._place = emulator.folder / "model.so"
        self._place.unlink(missing_ok=True)
        self._place.symlink_to(path.resolve())
        known = {**manifest, "artifact": {"bytes": path.stat().st_size}}
        self._place.with_suffix(".json").write_text(json.dumps(known), encoding="utf-8")

    def __call__(self, /, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Run once, in the inputs' shapes.

        UsageError where it does not take these shapes, or an index in the inputs is out of range.
        """
        one = fitting(self._path, self.interfaces, inputs, self.batches)
        if self._called[0].context:
            return Steps(self._called[0], self._with_files).grown(inputs)
        outputs = room_for(one.outputs)
        if self.batches and self.batches.of(inputs):
            for chosen, given, made in self.batches.parts(inputs, outputs):
                self._run_function(chosen, given, made)
        else:
            self._run_function(choose(self._path, self.interfaces, inputs), inputs, outputs)
        return of_true_size(one.outputs, outputs)

    def _run_function(self, chosen: int, inputs: Arrays, outputs: Arrays) -> None:
        one = self._called[chosen]
        given = [np.ascontiguousarray(inputs[info.name]) for info in one.inputs]
        self._with_files(given, [outputs[info.name] for info in one.outputs], chosen)

    def _with_files(
        self, given: Sequence[np.ndarray], made: Sequence[np.ndarray], chosen: int = 0
    ) -> None:
        """Run the program on files with the inputs, and read the outputs and the caches back."""
        folder, one = self._emulator.folder, self._called[chosen]
        takes = [folder / f"input-{at}" for at in range(len(given))]
        gives = [folder / f"output-{at}" for at in range(len(made))]
        for file, array in zip(takes, given, strict=True):
            file.write_bytes(array.tobytes())
        self._run("-v", str(chosen), str(self._place), *map(str, (*takes, *gives)))
        caches = {cache.input for cache in one.context.caches} if one.context else set()
        kept = [at for at, info in enumerate(one.inputs) if info.name in caches]
        files = [*gives, *(takes[at] for at in kept)]
        for file, array in zip(files, (*made, *(given[at] for at in kept)), strict=True):
            array[...] = np.fromfile(file, array.dtype).reshape(array.shape)

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
    """The emulator of a target of another architecture; None if there is none."""
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder:
        yield _emulator(target, Path(folder))


def _emulator(target: Target, folder: Path) -> Emulator | None:
    arch = architecture(target.triple)
    name = f"qemu-{arch}"
    qemu = shutil.which(name) or shutil.which(f"{name}-static")
    if arch == architecture() or not qemu:
        return None
    try:
        compiler = c_compiler(arch)
        c_runtime(arch, folder, wheels_folder())
        root = _done(compiler, "-print-file-name=libc.so.6", seconds=_LOOK_SECONDS).stdout.strip()
        known = _done(qemu, "-cpu", "help", seconds=_LOOK_SECONDS).stdout.split()
        cpu = target.cpu if target.cpu in known else "max"
        where = str(Path(root).resolve().parents[1])
        found = Emulator(name, (qemu, "-L", where, "-cpu", cpu, str(folder / PROGRAM)), folder)
        said = _done(*found.command, seconds=_LOOK_SECONDS).stderr
    except (AnsorError, OSError, IndexError, subprocess.SubprocessError):
        return None
    return found if said.startswith("usage: ") else None


def _done(*words: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. The emulated program gets nothing of this environment."""
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
