"""Leases: who is tuning which task, so that a second build that misses it waits for the first.

A lease is advisory and protects no data: where it fails, a task is tuned twice. It ends when its
holder releases it or dies. To find that out, neither another machine's clock nor any wall clock is
read:

- A holder of this boot and PID namespace is looked up in /proc. It is dead if there is no such
  process, if only its exit status is left, or if the process of that number started at another
  time. One that hangs or is stopped still holds its leases.
- Any other holder (another machine, another container, a system without /proc) is known by its
  `beat`, a counter that `renew` raises. It is dead once an observer has seen the same count for
  `SILENCE` seconds of its own monotonic clock, which stands still while the machine sleeps.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path

from .database import Database
from .record import TaskKey

SILENCE = 300.0  # seconds; renew a few times as often

_JOIN = """
    INSERT INTO holders VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET beat = beat + 1
"""
_OWN = "SELECT 1 FROM leases WHERE workload = ? AND target = ? AND holder = ?"
_END = "DELETE FROM leases WHERE workload = ? AND target = ? AND holder = ?"
_HOLDER = """
    SELECT h.* FROM leases AS l JOIN holders AS h ON h.token = l.holder
    WHERE l.workload = ? AND l.target = ?
"""


@dataclass(frozen=True)
class Holder:
    """A process that holds leases, as other processes can look it up.

    token: random. host: for messages. boot: the kernel's boot id. space: the PID namespace; both
    are "" where /proc does not have them. started: clock ticks from boot to its start. beat: how
    often it has renewed its leases; not part of its identity.
    """

    token: str
    host: str
    boot: str
    space: str
    pid: int
    started: int
    beat: int = field(default=0, compare=False)

    @classmethod
    def here(cls) -> Holder:
        """A new holder: this process."""
        pid = os.getpid()
        boot, space = _boot_and_namespace()
        found = _start_time(pid) if space else None
        return cls(os.urandom(8).hex(), platform.node(), boot, space, pid, found or 0)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class Leases(Database):
    """Leases of all processes, as this one sees them."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection, path)
        self._seen: dict[tuple[str, int], float] = {}  # when a holder's count was first seen

    def lease(self, keys: Sequence[TaskKey], holder: Holder) -> list[TaskKey]:
        """Lease the keys that nobody else is tuning, and return these.

        Nobody else gets them until they are released or the holder dies. To wait for a key, call
        this again.
        """
        rows = [(key.workload, key.target, holder.token) for key in keys]
        with self.writing() as run:
            others = self.rows("SELECT * FROM holders WHERE token <> ?", (holder.token,))
            dead = [(row["token"],) for row in others if self._dead(Holder(**row))]
            run.executemany("DELETE FROM holders WHERE token = ?", dead)  # leases go with them
            run.execute(_JOIN, astuple(holder))
            run.executemany("INSERT INTO leases VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows)
            return [key for key, row in zip(keys, rows, strict=True) if self.rows(_OWN, row)]

    def renew(self, holder: Holder) -> bool:
        """Raise the holder's beat; False if it was taken for dead and has lost its leases.

        Only other machines and containers need the beat: they wait for it `SILENCE` seconds.
        """
        with self.writing() as run:
            update = "UPDATE holders SET beat = beat + 1 WHERE token = ?"
            return run.execute(update, (holder.token,)).rowcount > 0

    def release(self, holder: Holder, keys: Iterable[TaskKey] | None = None) -> None:
        """Give back the leases on these keys, or all of the holder's."""
        if keys is None:
            self.write("DELETE FROM holders WHERE token = ?", [(holder.token,)])
        else:
            rows = [(key.workload, key.target, holder.token) for key in keys]
            self.write(_END, rows)

    def leaseholder(self, key: TaskKey) -> Holder | None:
        """The holder that was granted the lease on a key and has not released it, or None."""
        found = self.rows(_HOLDER, (key.workload, key.target))
        return Holder(**found[0]) if found else None

    def _dead(self, other: Holder) -> bool:
        if other.space and (other.boot, other.space) == _boot_and_namespace():
            return not _runs(other.pid, other.started)
        now = time.monotonic()
        return now - self._seen.setdefault((other.token, other.beat), now) > SILENCE


def _boot_and_namespace() -> tuple[str, str]:
    """Boot id and PID namespace of this process; both "" where /proc does not have them."""
    proc = Path("/proc")
    try:
        if str((proc / "self").readlink()) != str(os.getpid()):
            return "", ""  # /proc is of another namespace, with other process numbers
        boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot, str((proc / "self/ns/pid").readlink())
    except OSError:
        return "", ""


def _runs(pid: int, started: int) -> bool:
    """Whether the process that started then is still there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's; whether its start can be read depends on /proc
        return _start_time(pid) in {started, None}
    return _start_time(pid) == started


def _start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of a process; None if it is dead or cannot be seen."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()  # the name before it may hold anything
    return None if state in "ZX" else int(rest[18])
