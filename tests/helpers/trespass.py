"""Forbidden things that code in a worker may try; for a process of its own."""

import errno
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def attempts(payload):
    """The error of each attempt, or "" where it succeeds.

    payload: "folder", "beside" (a folder with a file "there"), and "port", of a server.
    """
    folder, beside = Path(payload["folder"]), Path(payload["beside"])
    tries = {
        "write": lambda: (folder / "x").write_bytes(b"1"),
        "read": (beside / "there").read_bytes,
        "write beside": lambda: (beside / "x").write_bytes(b"1"),
        "cut": lambda: (beside / "there").open("r+b").truncate(0),
        "remove": (beside / "there").unlink,
        "connect": lambda: socket.create_connection(("127.0.0.1", payload["port"]), 5).close(),
    }
    with ThreadPoolExecutor(1) as thread:
        return {name: thread.submit(_ends, attempt).result() for name, attempt in tries.items()}


def _ends(attempt):
    try:
        attempt()
    except OSError as error:
        return errno.errorcode[error.errno]
    return ""
