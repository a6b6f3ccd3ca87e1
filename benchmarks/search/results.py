"""Results of a long benchmark, a line of JSON each, so that it can be resumed.

A line is written at once and completely when a piece of work is done: killing the benchmark loses
only the current piece. Each line holds the machine of the measurement and the commit of the code.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansor_deploy.system.host import detect_host
from ansor_deploy.target import Target

if TYPE_CHECKING:
    from ansor_deploy.measure.measurer import Measurer

Found = dict[str, Any]


@dataclass(frozen=True)
class Machine:
    """What times depend on. cores: those used. isa: LLVM's name of the cpu, and its vectors."""

    cpu: str
    cores: int
    isa: str

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cores} of its cores, {self.isa}"


def machine(target: Target) -> Machine:
    """This machine, with the target's cores and instruction set."""
    isa = f"{target.cpu}, {target.vector_registers} registers of {8 * target.vector_bytes} bits"
    return Machine(detect_host()["description"], target.cores, isa)


class Results:
    """The results on one machine, in a file that may also hold those of other machines."""

    def __init__(self, path: Path, here: Machine) -> None:
        self.path, self.here = path, here
        self._commit = _commit()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._found = {
            _key(line["kind"], line["about"]): line
            for line in _lines(path)
            if line["machine"] == vars(here)
        }

    def of(self, kind: str) -> list[Found]:
        """All lines of a kind: "about" is the subject, "found" the result, "commit" the code."""
        return [line for (one, _), line in self._found.items() if one == kind]

    def get(self, kind: str, about: Found) -> Found | None:
        """The result that is in the file already; None if there is none."""
        line = self._found.get(_key(kind, about))
        return None if line is None else line["found"]

    def once(self, kind: str, about: Found, find: Callable[[], Found]) -> Found:
        """The result that is in the file, else what `find` returns, which is written down."""
        known = self.get(kind, about)
        if known is not None:
            return known
        line = {"kind": kind, "about": about, "found": find()}
        line |= {"machine": vars(self.here), "commit": self._commit}
        text = json.dumps(line)
        with self.path.open("a") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._found[_key(kind, about)] = json.loads(text)
        return self.once(kind, about, find)


@dataclass(frozen=True)
class Bench:
    """Where programs are measured, and where results are kept. seed: of the searches."""

    target: Target
    measurer: Measurer
    results: Results
    seed: int


def _key(kind: str, about: Found) -> tuple[str, str]:
    return kind, json.dumps(about, sort_keys=True)


def _lines(path: Path) -> Iterator[Found]:
    """The complete lines of a file, if it exists; an incomplete last line is cut off."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        os.truncate(path, len(whole))
    yield from map(json.loads, whole.splitlines())


def _commit() -> str:
    """The commit of this file's checkout, with "+" if it was changed; "" outside a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
