"""The child's side of a worker: import what it needs, answer calls until the parent is gone.

A child also limits what it takes of the machine.
"""

import contextlib
import ctypes
import importlib
import json
import math
import os
import resource
import signal
import sys
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_MESSAGE_CHARS = 600
_FILE_BYTES = 1 << 30  # beyond what any call writes; less than what printing fills in seconds
_MARGIN_BYTES = 1 << 30
_TIMES = 16
_connection: Connection  # to the parent, and the process that talks on it, since `serve` runs
_process: int


def serve(descriptor: int, parent: int, preload: str) -> None:
    """Answer calls on the socket until its other end closes. Never returns."""
    _tie_to(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent alone decides what Ctrl-C means
    importlib.import_module(preload)  # the second that this may take passes before the first call
    confine()  # the called code may do anything, and the machine's other work goes on

    global _connection, _process
    _connection, _process = Connection(descriptor), os.getpid()
    _connection.send_bytes(b"ready")
    while True:
        try:
            function, payload = json.loads(_connection.recv_bytes())
        except EOFError:
            os._exit(0)
        _send(_answer(function, payload))


def ask(what: Any) -> Any:
    """What the parent says to this, in the midst of a call; ValueError where it refuses."""
    _send(("asks", what))
    status, value = json.loads(_connection.recv_bytes())
    if status != "ok":
        raise ValueError(value)
    return value


def _send(message: tuple[str, Any]) -> None:
    """Send a message; a copy of this process, which called code has forked, ends instead."""
    if os.getpid() != _process:
        os._exit(0)
    _connection.send_bytes(json.dumps(message).encode())


def _tie_to(parent: int) -> None:
    """Die with the parent, even where it is killed and closes nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before the request was in place
        os._exit(1)


def _answer(function: str, payload: dict[str, Any]) -> tuple[str, Any]:
    module, _, name = function.partition(":")
    try:
        return "ok", getattr(importlib.import_module(module), name)(payload)
    except Exception as error:  # noqa: BLE001 - whatever the called code raises is its outcome
        return "raised", describe(error)


def describe(error: BaseException) -> str:
    """Type and first words of an error: TVM's messages go on with programs and C++ frames."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' | '.join(lines)}"[:_MESSAGE_CHARS]


def confine() -> None:
    """Write no core files and no endless ones, and be the first to go where memory runs out."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    with contextlib.suppress(OSError):  # no Linux, or no /proc
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    _baseline()


def limit_memory(size: int) -> None:
    """From now on, allow 1 GiB and 16 times `size` bytes more than the process began with.

    size: of the data at hand, of which every thread may keep a copy at worst; the margin is for
    stacks and heaps of many threads. An allocation beyond it fails, in this process alone. Does
    nothing where the system does not say what is in use.
    """
    if baseline := _baseline():
        most = baseline + _MARGIN_BYTES + _TIMES * size
        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))


def limit_processor(seconds: float) -> None:
    """From now on, allow so many seconds of processor time; then the system ends the process.

    How busy the machine is does not matter: on a loaded one the limit is the same.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


@cache
def _baseline() -> int:
    """Bytes of private memory in use when it was first asked; 0 where the system does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0
