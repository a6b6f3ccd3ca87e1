"""Try a package before it is written: its program must give the same outputs as the library.

It runs on this machine, or, for another architecture, under an emulator if there is one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...devices.bare import open_bare
from ...devices.c_runtime import PROGRAM
from ...devices.emulator import Emulator, open_emulator
from ...devices.machine import runs_here
from ...errors import UsageError, VerificationError
from ...system.host import architecture
from ..verify.draws import inputs_that_run
from ..verify.stand_in import EMULATED_FLOPS

if TYPE_CHECKING:
    from ...devices.bare import BareModel
    from ...devices.emulator import EmulatedModel
    from ...views import Report
    from ..manifest import Manifest

    Runs = tuple[BareModel | EmulatedModel, tuple[str, ...]]

_SEED = 0


def try_program(folder: Path, library: Path, manifest: Manifest, report: Report) -> None:
    """Run the program of a package, in a folder, and the library on the same seeded inputs.

    VerificationError where an output differs in any bit, or one of them does not run. Nothing is
    tried where neither this machine nor an emulator can run the code in a short time.
    """
    with _opened(library, manifest) as opened, tempfile.TemporaryDirectory() as scratch:
        if opened is None:
            return
        own, before = opened
        report.stage("try", "the package's program on seeded inputs")
        command = (*before, str(folder / PROGRAM))
        program = Emulator("the package's program", command, Path(scratch))
        packed = program.load(folder / library.name, manifest.to_json())
        for one in own.interfaces:
            try:
                inputs = inputs_that_run(own, one, _SEED)
            except UsageError:
                continue  # it accepts none of the indices that can be guessed
            _compare(packed(**inputs), own(**inputs))


def _compare(have: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> None:
    for name, expected in want.items():
        if have[name].tobytes() != expected.tobytes():
            raise VerificationError(
                f"output {name} of the package's program is not the library's; nothing was written",
                "report it, please, with the library and its manifest",
            )


@contextmanager
def _opened(library: Path, manifest: Manifest) -> Iterator[Runs | None]:
    """The library, ready to be called, and the command that emulates its architecture, if any."""
    target = manifest.target.machine
    if architecture(target.triple) != architecture():
        with open_emulator(target) as emulator:
            if emulator is None or _flops(manifest) > EMULATED_FLOPS:
                yield None
            else:
                yield emulator.load(library, manifest.to_json()), emulator.command[:-1]
    elif runs_here(replace(target, cores=1)):
        with open_bare() as bare:
            yield bare.load(library, manifest.to_json()), ()
    else:
        yield None


def _flops(manifest: Manifest) -> float:
    return float(sum(task.weight * task.flops for task in manifest.tasks))
