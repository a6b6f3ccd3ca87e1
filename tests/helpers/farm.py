"""A Dask scheduler and workers, each a process of its own that can be killed alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from helpers.processes import MARK

TUNE = ("--registry", "r.db", "--effort", "quick", "--trials", "6", "--json")
_DASK = [sys.executable, "-m", "dask"]
_QUIET = ["--no-dashboard", "--host", "127.0.0.1"]


class Farm:
    """A scheduler. folder: for logs, and for the homes of its workers."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workers = folder, dict[str, Any]()
        self._file = folder / "scheduler.json"
        words = ["scheduler", *_QUIET, "--port", "0", "--scheduler-file", str(self._file)]
        self._scheduler = self._start("scheduler", words)
        self.address = self._address()

    def worker(
        self, name: str, *, threads: int = 1, prefix: Sequence[str] = (), **more: str
    ) -> None:
        """Start a worker. Its children bear its mark.

        prefix: words before its command. more: variables that differ from this process's.
        """
        words = ["worker", self.address, *_QUIET, "--no-nanny", "--nthreads", str(threads)]
        self.workers[name] = self._start(name, [*words, "--name", name], prefix, **more)
        self._await(name, lambda: "Registered to" in self.log(name))

    def mark(self, name: str) -> str:
        """The mark of a worker's processes."""
        return str(self.folder / name)

    def kill(self, name: str) -> None:
        """End a worker at once, by SIGKILL, as in a power cut."""
        self.workers[name].kill()
        self.workers.pop(name).wait()

    def kill_scheduler(self) -> None:
        """End the scheduler at once."""
        self._scheduler.kill()

    def log(self, name: str) -> str:
        """The log of a worker, or of the scheduler."""
        return (self.folder / f"{name}.log").read_text()

    def close(self) -> None:
        """End the workers and the scheduler."""
        for process in (*self.workers.values(), self._scheduler):
            process.kill()
            process.wait()

    def _start(
        self, name: str, words: list[str], prefix: Sequence[str] = (), **more: str
    ) -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), MARK: self.mark(name), **more}
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [*prefix, *_DASK, *words], cwd=self.folder, env=env, stdout=log, stderr=log
            )

    def _address(self) -> str:
        self._await("scheduler", lambda: self._file.exists() and self._file.read_text())
        return str(json.loads(self._file.read_text())["address"])

    def _await(self, name: str, there: Callable[[], Any]) -> None:
        deadline = time.monotonic() + 60
        while not there():
            assert time.monotonic() < deadline, self.log(name)
            time.sleep(0.05)
