"""What kind of machine a board is, and our runtime on it. Needs its Python, and nothing else."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DeviceError, DeviceLost
from .bundle import Bundle, make_bundle
from .connection import Connection

PYTHON = "python3 -I -S"  # its standard library, and nothing that was installed beside it
UPLOAD_SECONDS = 1800.0
_OLDEST_LIBC = (2, 28)
_MARK = b"ansor-deploy facts "


@dataclass(frozen=True)
class Board:
    """arch: as `uname -m` says. python: "3.11". cache: our folder there. bundles: in it."""

    arch: str
    python: str
    cache: str
    bundles: tuple[str, ...]


def look_at(name: str, connection: Connection) -> Board:
    """The board's facts; DeviceError where it cannot run TVM's runtime."""
    ran = connection.run(f"exec {PYTHON} -c {shlex.quote(_script('facts.py'))}")
    if ran.status == 127:
        raise DeviceError(
            f"{name} has no python3", "install it there (Debian: apt-get install python3)"
        )
    try:
        facts = json.loads(ran.stdout.partition(_MARK)[2].splitlines()[0])
    except (IndexError, ValueError) as error:
        reason = (ran.stderr.strip().splitlines() or [f"status {ran.status}"])[-1]
        raise DeviceError(
            f"{name}: its python3 does not tell what machine it is: {reason}",
            "log in by ssh and see what `python3 -I -S -c 'import json'` says",
        ) from error
    _check(name, facts)
    return Board(facts["arch"], facts["python"], facts["cache"], tuple(facts["bundles"]))


def install(name: str, connection: Connection, board: Board, wheels: Path | None) -> str:
    """Put the runtime there unless it is; its folder on the board.

    wheels: the folder of this machine that `fetch_wheels` filled. DeviceError where a wheel is
    missing, or the board has no room; DeviceLost where the upload was torn.
    """
    bundle = make_bundle(name, board.arch, board.python, wheels)
    if bundle.digest not in board.bundles:
        _upload(name, connection, board, bundle)
    return f"{board.cache}/{bundle.digest}"


def _upload(name: str, connection: Connection, board: Board, bundle: Bundle) -> None:
    words = [_script("unpack.py"), board.cache, bundle.digest]
    command = f"exec {PYTHON} -c {shlex.join(words)}"
    ran = connection.run(command, bundle.packed(), UPLOAD_SECONDS)
    if ran.status == 0:
        return
    reason = (ran.stderr.strip().splitlines() or [f"status {ran.status}"])[-1]
    if ran.status < 0 or "damaged" in reason or "end-of-stream" in reason:
        raise DeviceLost(f"{name}: the upload was torn: {reason}", "repeat the command")
    raise DeviceError(
        f"{name}: the runtime ({len(bundle.archive) / 1e6:.0f} MB) cannot be unpacked into "
        f"{board.cache}: {reason}",
        "make room on the board, or give its user a home folder that can be written",
    )


def _script(file: str) -> str:
    return Path(__file__).with_name(file).read_text(encoding="utf-8")


def _check(name: str, facts: dict[str, Any]) -> None:
    """DeviceError where no wheel can fit, said by what the user can change."""
    libc = tuple(int(part) for part in facts["libc"].split(".") if part.isdigit())
    if facts["bits"] != 64:
        raise DeviceError(
            f"{name} ({facts['arch']}) runs a {facts['bits']}-bit system, for which TVM's "
            "runtime is not published",
            "run a 64-bit system on the board, if its processor has 64 bits",
        )
    if facts["implementation"] not in ("cpython", "cpythonm"):  # m: before 3.8, told elsewhere
        raise DeviceError(
            f"{name}: its python3 is {facts['implementation']}, and not plain CPython",
            "install CPython as `python3` on the board",
        )
    if libc < _OLDEST_LIBC:
        have = f"glibc {facts['libc']}" if facts["libc"] else "another C library than glibc"
        raise DeviceError(
            f"{name} has {have}, and TVM's runtime needs glibc 2.28 or newer",
            "run a newer system on the board (Debian 10, Ubuntu 18.10 or later)",
        )
