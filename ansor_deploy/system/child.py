"""The child's side of a worker: import what it needs, answer calls until the parent is gone."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from ..errors import AnsorError
from .limits import confine

_PR_SET_PDEATHSIG = 1
_MESSAGE_CHARS = 600


def serve(descriptor: int, parent: int, preload: str) -> None:
    """Answer calls on the socket until its other end closes. Never returns."""
    _tie_to(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent alone decides what Ctrl-C means
    importlib.import_module(preload)  # the second that this may take passes before the first call
    confine()  # the called code may do anything, and the machine's other work goes on

    connection = Connection(descriptor)
    connection.send_bytes(b"ready")
    while True:
        try:
            function, payload = json.loads(connection.recv_bytes())
        except EOFError:
            os._exit(0)
        connection.send_bytes(json.dumps(_answer(function, payload)).encode())


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
    text = error.message if isinstance(error, AnsorError) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {' | '.join(lines)}"[:_MESSAGE_CHARS]
