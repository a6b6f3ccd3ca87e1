"""The protocol of a site, where code runs, and this machine as one; board.py has the other."""

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

# What a run worker imports, here and on a board: TVM's runtime, and no compiler.
RUNS = "ansor_deploy.measure.on_cpu"


class Site(Protocol):
    """A machine with a process that runs code and that can be killed alone.

    name: for messages. remote: whether it is another machine, which builds here do not disturb.
    pace: seconds that the reference kernel may take there; 0 where that is to be found.
    """

    name: str
    remote: bool
    pace: float

    def start(self) -> None:
        """Start the process in the background, unless it lives."""

    def call(self, function: str, payload: dict[str, Any], timeout: float) -> Any:
        """What `Worker.call` does. DeviceLost where the site is at fault and not what ran on it."""

    def put(self, path: Path) -> str:
        """Make a file of this machine available on the site; its path there."""

    def get(self, place: str, size: int) -> bytes:
        """What a file of the site contains, which is so many bytes. DeviceLost where it is not."""

    def drop(self, place: str) -> None:
        """Remove what `put` or the site's process left at a path, if it is there."""

    def scratch(self, name: str) -> str:
        """A path for a file that the site's process writes."""

    def room(self) -> Room | None:
        """What it has left at the moment; None where files are not copied, or nobody knows."""

    def strain(self) -> Strain:
        """What keeps its clock down at the moment."""

    def restart(self) -> None:
        """Kill the process, whatever it does, and start a fresh one in the background."""

    def interrupt(self) -> None:
        """End what runs, from another thread than the one that waits for it."""

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
        # TVM takes half of the cores on x86 where nothing is set before its first parallel loop.
        env = {"TVM_NUM_THREADS": str(cores), fence.VARIABLE: str(self._scratch.path)}
        self._worker = Worker(RUNS, env)

    def start(self) -> None:
        """Start the process in the background, unless it lives."""
        self._worker.start()

    def call(self, function: str, payload: dict[str, Any], timeout: float) -> Any:
        """What `Worker.call` does, in this site's process."""
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
        """What the file contains."""
        with Path(place).open("rb") as file:
            return file.read(size)

    def drop(self, place: str) -> None:
        """Remove a file that the process wrote; what was put is its owner's to remove."""
        if Path(place).is_relative_to(self._scratch.path):
            Path(place).unlink(missing_ok=True)

    def scratch(self, name: str) -> str:
        """A path in a folder that goes with the site."""
        return str(self._scratch.path / f"{next(self._names)}-{name}")

    def room(self) -> Room | None:
        """None: nothing is copied to this machine."""
        return None

    def strain(self) -> Strain:
        """What keeps this machine's clock down at the moment."""
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
