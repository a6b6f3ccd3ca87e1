"""The child's side of a worker: import what it needs, and answer calls until its parent ends."""

import ctypes
import gc
import importlib
import json
import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from . import fence
from .limits import confine, go_first
from .machine_fault import fault_of

_PR_SET_PDEATHSIG = 1  # of prctl: the signal at the parent's death
_MESSAGE_CHARS = 600  # the longest description of an error
_FRAMES_CHARS = 1 << 16  # of its frames: the last ones, which raised it
# Set by `serve`: the socket to the parent, and the id of the process that may use it.
_connection: Connection
_process: int


def serve(descriptor: int, parent: int, preload: str) -> None:
    """Answer calls on the socket until its other end closes. Never returns."""
    _tie_to(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent decides what Ctrl-C means
    go_first()  # before the fence, which forbids to write its file
    if folder := os.environ.get(fence.VARIABLE):
        fence.close_around(folder)
    gc.disable()
    importlib.import_module(preload)  # may take a second, before the first call arrives
    gc.freeze()  # imported objects stay for good: garbage collection need not visit them
    gc.enable()
    confine()  # called code may do anything, and must not disturb the machine's other work

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
    """Ask the parent for a value in the middle of a call; ValueError where it refuses."""
    _send(("asks", what))
    status, value = json.loads(_connection.recv_bytes())
    if status != "ok":
        raise ValueError(value)
    return value


def _send(message: tuple[str, Any]) -> None:
    """Send a message; a fork of this process, made by called code, exits instead."""
    if os.getpid() != _process:
        os._exit(0)
    _connection.send_bytes(json.dumps(message).encode())


def _tie_to(parent: int) -> None:
    """End when the parent ends, even if it is killed and cannot close the socket."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the request took effect
        os._exit(1)


def _answer(function: str, payload: dict[str, Any]) -> tuple[str, Any]:
    module, _, name = function.partition(":")
    try:
        return "ok", getattr(importlib.import_module(module), name)(payload)
    except Exception as error:  # noqa: BLE001 - any exception of called code is an outcome
        if (fault := fault_of(error)) is not None:
            return "machine", (fault.text, fault.hint)
        return "raised", (describe(error), _frames(error))


def describe(error: BaseException) -> str:
    """Type and first words of an error: TVM's messages continue with programs and C++ frames."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' | '.join(lines)}"[:_MESSAGE_CHARS]


def _frames(error: BaseException) -> str:
    """Where an error was raised, for the log of a crash."""
    return "".join(traceback.format_tb(error.__traceback__))[-_FRAMES_CHARS:]
