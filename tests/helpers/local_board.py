"""This machine as a board, with its own home and Python, and none of our packages."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ansor_deploy.devices.board import BoardSite
from ansor_deploy.devices.connection import Ran
from ansor_deploy.errors import DeviceLost


class LocalBoard:
    """A board with a home, a temporary folder and a `python3` on the PATH, under `root`."""

    def __init__(self, root: Path) -> None:
        self.home, self.temp, programs = root / "home", root / "tmp", root / "bin"
        for folder in (self.home, self.temp, programs):
            folder.mkdir(parents=True)
        python = Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}").resolve()
        (programs / "python3").symlink_to(python)
        self.env = {
            "HOME": str(self.home),
            "TMPDIR": str(self.temp),
            "PATH": f"{programs}:/usr/bin:/bin",
        }

    @property
    def cache(self) -> Path:
        return self.home / ".cache" / "ansor-deploy"

    def sessions(self) -> list[Path]:
        return list(self.cache.glob("session-*"))

    def connect(self) -> LocalConnection:
        return LocalConnection(self.env)


class LocalConnection:
    """A `devices.connection.Connection` whose other end is child processes."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self.streams: list[LocalStream] = []

    def run(self, command: str, stdin: bytes = b"", timeout: float = 30.0) -> Ran:
        # Output goes to files: any process forked meanwhile would keep a pipe open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            ran = subprocess.run(
                ["/bin/sh", "-c", command],
                input=stdin, stdout=out, stderr=err, timeout=timeout, env=self.env, check=False,
            )  # fmt: skip
            said, complained = (os.pread(file.fileno(), 1 << 30, 0) for file in (out, err))
        return Ran(ran.returncode, said, complained.decode(errors="replace"))

    def open(self, command: str) -> LocalStream:
        self.streams.append(LocalStream(command, self.env))
        return self.streams[-1]

    def close(self) -> None:
        for stream in self.streams:
            stream.close()


class LocalStream:
    """A child process. Its end is the stream's, and the reverse."""

    def __init__(self, command: str, env: dict[str, str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the stream
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", command], bufsize=0, env=env, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        )  # fmt: skip
        self._out, self._in = self.process.stdout.fileno(), self.process.stdin.fileno()

    def read(self, count: int, timeout: float) -> bytes:
        if not select.select([self._out], [], [], timeout)[0]:
            raise TimeoutError
        return os.read(self._out, count)

    def write(self, data: bytes, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        view = memoryview(data)
        while view:
            if not select.select([], [self._in], [], max(0.0, deadline - time.monotonic()))[1]:
                raise DeviceLost("nothing is read there")
            try:
                view = view[os.write(self._in, view[:4096]) :]
            except OSError as error:
                raise DeviceLost(f"the far side is gone: {error}") from error

    def complaint(self) -> str:
        return os.pread(self._errors.fileno(), 4000, 0).decode(errors="replace")

    def close(self) -> None:
        """Close the child's input, after which its output ends, too."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def reap(self) -> int:
        """After `close`: wait for the process, and close its files."""
        status = self.process.wait(10)
        self.process.stdout.close()
        self._errors.close()
        return status

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)


def open_site(*words, **options):
    """A connected site on a board; the arguments are those of BoardSite."""
    site = BoardSite(*words, **options)
    site.start()
    return site
