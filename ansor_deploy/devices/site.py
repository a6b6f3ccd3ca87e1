"""The protocol of a site, which runs code, and this machine as a site; board.py has boards."""

import itertools
import platform
from pathlib import Path
from typing import Any, Protocol

from ..system import fence
from ..system.scratch import Scratch
from ..system.untrusted import Refused
from ..system.worker import Worker, WorkerFailure
from . import probe
from .answers import check_answer
from .room import Room
from .strain import Strain, strain

# The module that a run worker imports, here and on a board: TVM's runtime, and no compiler.
RUNS = "ansor_deploy.measure.on_cpu"


class Site(Protocol):
    """A machine with a process that runs code and that can be killed alone.

    name: for messages. remote: whether it is another machine, which builds here do not disturb.
    pace: the accepted seconds of the reference kernel there; 0 where they must be measured first.
    """

    name: str
    remote: bool
    pace: float

    def start(self) -> None:
        """Start the process in the background, unless it lives."""

    def call(self, function: str, payload: dict[str, Any], timeout: float) -> Any:
        """As `Worker.call`. DeviceLost where the site is at fault, and not the code that ran."""

    def put(self, path: Path) -> str:
        """Make a file of this machine available on the site; its path there."""

    def get(self, place: str, size: int) -> bytes:
        """The content of a file of the site; DeviceLost where it does not have `size` bytes."""

    def drop(self, place: str) -> None:
        """Remove a file that `put` or the site's process has written, if it is there."""

    def scratch(self, name: str) -> str:
        """A path for a file that the site's process writes."""

    def room(self) -> Room | None:
        """Its free memory and disk now; None where files are not copied, or it is unknown."""

    def strain(self) -> Strain:
        """What keeps its clock down now."""

    def restart(self) -> None:
        """Kill the process, whatever it does, and start a fresh one in the background."""

    def interrupt(self) -> None:
        """End the running code, from another thread than the one that waits for it."""

    def close(self) -> None:
        """Kill the process and remove every file. May be called twice."""


class LocalSite:
    """This machine, with so many cores. Files are shared, not copied."""

    remote = False
    pace = 0.0

    def __init__(self, cores: int) -> None:
        self.name = platform.node()
        self._scratch = Scratch()
        self._names = itertools.count()
        # By default TVM would take half of the cores on x86; it must be set before its first loop.
        env = {"TVM_NUM_THREADS": str(cores), fence.VARIABLE: str(self._scratch.path)}
        self._worker = Worker(RUNS, env)

    def start(self) -> None:
        """Start the process in the background, unless it lives."""
        self._worker.start()

    def call(self, function: str, payload: dict[str, Any], timeout: float) -> Any:
        """As `Worker.call`, in this site's process."""
        value = self._worker.call(function, payload, timeout)
        try:
            check_answer(function, payload, value)
        except Refused as refused:  # a candidate may do anything to the process
            raise WorkerFailure("crash", f"it answered nonsense: {refused}") from refused
        return value

    def put(self, path: Path) -> str:
        """The file itself."""
        return str(path)

    def get(self, place: str, size: int) -> bytes:
        """The content of the file."""
        with Path(place).open("rb") as file:
            return file.read(size)

    def drop(self, place: str) -> None:
        """Remove a file that the process wrote; `put` made no copy, so its file stays."""
        if Path(place).is_relative_to(self._scratch.path):
            Path(place).unlink(missing_ok=True)

    def scratch(self, name: str) -> str:
        """A path in a folder that is removed with the site."""
        return str(self._scratch.path / f"{next(self._names)}-{name}")

    def room(self) -> Room | None:
        """None: nothing is copied to this machine."""
        return None

    def strain(self) -> Strain:
        """What keeps this machine's clock down now."""
        return strain(probe.governors(), probe.temperatures(), probe.throttled())

    def restart(self) -> None:
        """Kill the process and start a fresh one in the background."""
        self._worker.kill()
        self._worker.start()

    def interrupt(self) -> None:
        """Kill the process: the thread that waits for it sees a crash."""
        self._worker.interrupt()

    def close(self) -> None:
        """Kill the process and remove its folder."""
        self._worker.close()
        self._scratch.close()
