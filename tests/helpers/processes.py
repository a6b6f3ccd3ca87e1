"""Checks that child processes have ended."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

import psutil

MARK = "ANSOR_DEPLOY_TEST_FAULTS"  # environment variable of processes that must not outlive a test


def wait_until_gone(pids: Collection[int]) -> None:
    """Return when none of the processes runs; fail after five seconds."""
    deadline = time.monotonic() + 5
    while alive := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < deadline, f"still running: {alive}"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether the process exists and has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def remaining(mark: str, besides: Collection[int] = (), patience: float = 15) -> list[int]:
    """Processes with the mark in their environment that remain after some seconds."""
    end = time.monotonic() + patience
    while (found := _marked(mark) - set(besides)) and time.monotonic() < end:
        time.sleep(0.1)
    return sorted(found)


def _marked(mark: str) -> set[int]:
    sought = f"{MARK}={mark}\0".encode()
    processes = Path("/proc").glob("[0-9]*")
    return {int(p.name) for p in processes if sought in _environment(p)}


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:  # it has ended, or is another user's
        return b""
