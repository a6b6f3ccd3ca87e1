"""The child's side of a worker: import what it needs, answer calls until the parent is gone."""

import ctypes
import gc
import importlib
import json
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from . import fence
from .limits import confine, go_first
from .machine_fault import fault_of

_PR_SET_PDEATHSIG = 1
_MESSAGE_CHARS = 600
_connection: Connection  # to the parent, and the process that talks on it, since `serve` runs
_process: int


def serve(descriptor: int, parent: int, preload: str) -> None:
    """Answer calls on the socket until its other end closes. Never returns."""
    _tie_to(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent alone decides what Ctrl-C means
    go_first()  # by a file, which no fenced process may write
    if folder := os.environ.get(fence.VARIABLE):
        fence.close_around(folder)
    gc.disable()
    importlib.import_module(preload)  # the second that this may take passes before the first call
    gc.freeze()  # what is imported stays: no collection need look through it
    gc.enable()
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
        if (fault := fault_of(error)) is not None:
            return "machine", (fault.text, fault.hint)
        return "raised", describe(error)


def describe(error: BaseException) -> str:
    """Type and first words of an error: TVM's messages go on with programs and C++ frames."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' | '.join(lines)}"[:_MESSAGE_CHARS]
