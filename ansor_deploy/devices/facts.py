"""What a board says of itself: `probe.py` is run by its own python3, and the answer is checked."""

import shlex
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..errors import DeviceError
from .connection import Connection, Ran

PYTHON = "python3 -I -S"  # its standard library, and nothing that was installed beside it
OLDEST_GLIBC = (2, 28)
_PROBE_SECONDS = 30.0


@dataclass(frozen=True)
class Facts:
    """The facts of `probe.py`; what a board does not report is None or empty.

    time: seconds since 1970 by its clock. machine: as `uname -m` says. bits: of a pointer, as a
    64-bit kernel may run 32-bit programs. libc: name and version. python: full version.
    implementation: of Python, with its ABI flags. flags: instructions, in the kernel's words.
    temperatures: degrees Celsius by sensor. throttled: bits of the Raspberry Pi's firmware.
    memory, disk: bytes that are free. load: of the last minute. cache: our folder there.
    runtimes: digests of the bundles in it.
    """

    time: float
    machine: str
    bits: int
    libc: tuple[str, str]
    python: str
    implementation: str
    cores: int
    flags: list[str]
    governors: list[str]
    temperatures: dict[str, float]
    throttled: int | None
    memory: int | None
    disk: int
    load: float
    cache: str
    runtimes: list[str]

    @property
    def short_python(self) -> str:
        """The version that decides which packages fit, such as "3.11"."""
        return ".".join(self.python.split(".")[:2])


def run_probe(connection: Connection) -> Ran:
    """Run `probe.py` on a device."""
    script = Path(__file__).with_name("probe.py").read_text(encoding="utf-8")
    return connection.run(f"exec {PYTHON} -c {shlex.quote(script)}", timeout=_PROBE_SECONDS)


def facts_of(ran: Ran) -> Facts:
    """The facts that the probe printed last.

    msgspec.DecodeError where it printed none; its subclass ValidationError where they make no
    sense: a board may say anything.
    """
    lines = ran.stdout.splitlines() or [b""]
    return msgspec.json.decode(lines[-1], type=Facts)


def look_at(name: str, connection: Connection) -> Facts:
    """The board's facts; DeviceError where it cannot run TVM's runtime."""
    ran = run_probe(connection)
    if ran.status == 127:
        hint = "install it there (Debian: apt-get install python3)"
        raise DeviceError(f"{name} has no python3", hint)
    try:
        facts = facts_of(ran)
    except msgspec.DecodeError as error:
        what = f"{name}: its python3 does not report what machine it is: {last_line(ran)}"
        hint = "log in by ssh and see what `python3 -I -S -c 'import json'` says"
        raise DeviceError(what, hint) from error
    _check(name, facts)
    return facts


def last_line(ran: Ran) -> str:
    """The reason why a command failed: the last line of its stderr, or its exit status."""
    return (ran.stderr.strip().splitlines() or [f"status {ran.status}"])[-1]


def numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version: 3.11.2 as (3, 11); () where it is no version."""
    try:
        return tuple(int(word) for word in version.split(".")[:2])
    except ValueError:
        return ()


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
        what = f"{name}: its python3 is {facts.implementation}, and not plain CPython"
        hint = "install CPython as `python3` on the board"
        raise DeviceError(what, hint)
    if kind != "glibc" or numbers(version) < OLDEST_GLIBC:
        have = f"glibc {version}" if kind == "glibc" else "another C library than glibc"
        hint = "run a newer system on the board (Debian 10, Ubuntu 18.10 or later)"
        raise DeviceError(f"{name} has {have}, and TVM's runtime needs glibc 2.28 or newer", hint)
