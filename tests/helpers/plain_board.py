"""Boards of this machine's architecture, each with its own home, behind SSH."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from ansor_deploy.devices.inventory import Inventory, parse_url
from ansor_deploy.devices.known_hosts import parse
from helpers.processes import MARK, remaining
from helpers.sshd import Sshd


class PlainBoard:
    """A board with this machine's Python and nothing else. Its processes bear its mark."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.home, self.temp, self.programs = folder / "home", folder / "tmp", folder / "bin"
        for each in (self.home, self.temp, self.programs):
            each.mkdir(parents=True)
        python = Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}").resolve()
        (self.programs / "python3").symlink_to(python)
        self.mark = str(folder)
        path = f"PATH={self.programs}:/usr/bin:/bin"
        extra = f"SetEnv HOME={self.home} TMPDIR={self.temp} {path} {MARK}={self.mark}\n"
        self.sshd = Sshd(folder / "sshd", extra=extra, **options).start()

    @property
    def bundles(self) -> list[Path]:
        """The bundles that were uploaded."""
        return [path for path in self._cache.glob("?" * 64) if path.is_dir()]

    @property
    def lock(self) -> Path:
        """The lock file of a host's agent."""
        return self._cache / "agent.lock"

    @property
    def left(self) -> list[Any]:
        """Processes and session folders that remain without a host, after a while."""
        return [*remaining(self.mark, patience=75), *self._cache.glob("session-*")]

    def agents(self) -> list[int]:
        """Process ids of the agents, without those of processes that run candidates."""
        marked = remaining(self.mark, patience=0)
        return [pid for pid in marked if b"agent import main" in _command(pid)]

    def shut_door(self) -> None:
        """Kill only the SSH server and its sessions."""
        pids = [self.sshd.pid, *_descendants(self.sshd.pid, b"sshd")]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def pull_plug(self) -> None:
        """Turn the board off: all processes end at once, and written files are lost."""
        self.sshd.stop()
        for pid in remaining(self.mark, patience=0):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for each in (self.home, self.temp):
            shutil.rmtree(each)
            each.mkdir()

    @property
    def _cache(self) -> Path:
        return self.home / ".cache" / "ansor-deploy"


def add_board(sshd: Sshd, name: str, target: str) -> None:
    """Add a server to the user's devices, with its key trusted."""
    inventory = Inventory.find()
    inventory.put(parse_url(name, sshd.url, target, str(sshd.key)))
    (entry,) = parse(f"{name} {sshd.host_key.with_name('host_key.pub').read_text()}")
    inventory.trust(name, entry.key)


def _descendants(pid: int, name: bytes) -> list[int]:
    children = psutil.Process(pid).children(recursive=True)
    return [child.pid for child in children if _command(child.pid).startswith(name)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
