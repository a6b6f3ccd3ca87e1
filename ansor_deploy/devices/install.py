"""Put our runtime on a board; this needs the board's Python and nothing else."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from ..errors import DeviceError, DeviceLost
from .bundle import Bundle, make_bundle
from .connection import Connection
from .facts import OLDEST_GLIBC, PYTHON, Facts, facts_of, last_line, numbers, run_probe

UPLOAD_SECONDS = 1800.0


def look_at(name: str, connection: Connection) -> Facts:
    """The board's facts; DeviceError where it cannot run TVM's runtime."""
    ran = run_probe(connection)
    if ran.status == 127:
        raise DeviceError(
            f"{name} has no python3", "install it there (Debian: apt-get install python3)"
        )
    try:
        facts = facts_of(ran)
    except msgspec.DecodeError as error:
        raise DeviceError(
            f"{name}: its python3 does not report what machine it is: {last_line(ran)}",
            "log in by ssh and see what `python3 -I -S -c 'import json'` says",
        ) from error
    _check(name, facts)
    return facts


def install(name: str, connection: Connection, board: Facts, wheels: Path | None) -> str:
    """Put the runtime on a board that lacks it; return its folder there.

    wheels: the folder of this machine that `fetch_wheels` filled. DeviceError where a wheel is
    missing, or the board has no room; DeviceLost where the upload was torn.
    """
    bundle = make_bundle(name, board.machine, board.short_python, wheels)
    if bundle.digest not in board.runtimes:
        _upload(name, connection, board, bundle)
    return f"{board.cache}/{bundle.digest}"


def _upload(name: str, connection: Connection, board: Facts, bundle: Bundle) -> None:
    script = Path(__file__).with_name("unpack.py").read_text(encoding="utf-8")
    command = f"exec {PYTHON} -c {shlex.join([script, board.cache, bundle.digest])}"
    ran = connection.run(command, bundle.packed(), UPLOAD_SECONDS)
    if ran.status == 0:
        return
    reason = last_line(ran)
    if ran.status < 0 or "damaged" in reason or "end-of-stream" in reason:
        raise DeviceLost(f"{name}: the upload was torn: {reason}", "repeat the command")
    raise DeviceError(
        f"{name}: the runtime ({len(bundle.archive) / 1e6:.0f} MB) cannot be unpacked into "
        f"{board.cache}: {reason}",
        "make room on the board, or give its user a home folder that can be written",
    )


def _check(name: str, facts: Facts) -> None:
    """DeviceError where no wheel can fit; it says what the user can change."""
    kind, version = facts.libc
    if facts.bits != 64:
        raise DeviceError(
            f"{name} ({facts.machine}) runs a {facts.bits}-bit system, for which TVM's "
            "runtime is not published",
            "run a 64-bit system on the board, if its processor has 64 bits",
        )
    if facts.implementation not in ("cpython", "cpythonm"):  # m: before 3.8, refused by version
        raise DeviceError(
            f"{name}: its python3 is {facts.implementation}, and not plain CPython",
            "install CPython as `python3` on the board",
        )
    if kind != "glibc" or numbers(version) < OLDEST_GLIBC:
        have = f"glibc {version}" if kind == "glibc" else "another C library than glibc"
        raise DeviceError(
            f"{name} has {have}, and TVM's runtime needs glibc 2.28 or newer",
            "run a newer system on the board (Debian 10, Ubuntu 18.10 or later)",
        )
