"""The facts of a board: its own python3 runs `probe.py`, and the answer is checked here."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from ..errors import DeviceError
from ..system.host import RUN_64_BITS
from ..system.untrusted import Refused, admit, brief
from ..target import GpuLimits
from .answers import Place, Word
from .connection import Connection, Ran

# Only the standard library, without installed packages; no bytecode is written (see `unpack.py`).
PYTHON = "python3 -I -S -B"
OLDEST_GLIBC = (2, 28)
_PROBE_SECONDS = 90.0
_MOST_JSON = 1 << 18  # bytes

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.+-]{0,64}\Z")]
Version = Annotated[str, Meta(pattern=r"^[0-9]{1,3}\.[0-9]{1,3}[A-Za-z0-9.+]{0,32}\Z")]
Bytes = Annotated[int, Meta(ge=0, le=2**60)]
Degrees = Annotated[float, Meta(ge=-1000, le=1e5)]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{16,64}\Z")]


@dataclass(frozen=True)
class GpuFacts:
    """A GPU. arch: such as "sm_90". sms: multiprocessors. driver: the version of CUDA it has."""

    name: Word
    arch: Name
    sms: Annotated[int, Meta(ge=0, le=2**16)]
    driver: Version

    def __str__(self) -> str:
        return f"{self.name}, {self.arch} with {self.sms} multiprocessors"

    def fits(self, limits: GpuLimits) -> bool:
        """Whether it is the kind of GPU that a target describes."""
        return (self.arch, self.sms) == (limits.arch, limits.sms)


@dataclass(frozen=True)
class Facts:
    """The facts of `probe.py`; facts that a board does not report are None or empty.

    time: seconds since 1970 by its clock. machine: as `uname -m` prints it. bits: of a pointer, as
    a 64-bit kernel may run 32-bit programs. libc: name and version. python: full version.
    implementation: that of Python, with its ABI flags. flags: instruction sets, by the kernel's
    names. temperatures: degrees Celsius by sensor. throttled: bits of the Raspberry Pi's firmware.
    memory, disk: free bytes. load: of the last minute. cache: our folder there. runtimes: digests
    of the bundles in it. model: the board's name, or its processor's. parts: the kinds of core of
    an Arm board, as implementer:part, each once. gpu: the first NVIDIA GPU.
    """

    time: Annotated[float, Meta(ge=0, le=1e12)]
    machine: Name
    bits: Annotated[int, Meta(ge=8, le=128)]
    libc: tuple[Name, Name]
    python: Version
    implementation: Name
    cores: Annotated[int, Meta(ge=1, le=2**16)]
    flags: Annotated[list[Word], Meta(max_length=2000)]
    governors: Annotated[list[Word], Meta(max_length=100)]
    temperatures: Annotated[dict[Word, Degrees], Meta(max_length=1000)]
    throttled: Annotated[int, Meta(ge=0, le=2**32)] | None
    memory: Bytes | None
    disk: Bytes
    load: Annotated[float, Meta(ge=0, le=1e6)]
    cache: Place
    runtimes: Annotated[list[Digest], Meta(max_length=1000)]
    model: Word = ""
    parts: Annotated[tuple[Word, ...], Meta(max_length=100)] = ()
    gpu: GpuFacts | None = None
    noexec: bool = False

    @property
    def short_python(self) -> str:
        """The version that decides which packages fit, such as "3.11"."""
        return ".".join(self.python.split(".")[:2])


MOUNT_EXEC = "mount it with exec (mount -o remount,exec), or log in as a user with another home"
_ECHO = "ansor-deploy-here"
GIVE_SHELL = "give it a shell on the board (chsh -s /bin/sh), or log in as another user"


def run_probe(connection: Connection) -> Ran:
    """Run `probe.py` on a device."""
    script = Path(__file__).with_name("probe.py").read_text(encoding="utf-8")
    return connection.run(f"exec {PYTHON} -c {shlex.quote(script)}", timeout=_PROBE_SECONDS)


def facts_of(ran: Ran) -> Facts:
    """The facts in the last line that the probe printed; Refused where they are invalid."""
    lines = ran.stdout.splitlines() or [b""]
    return admit(lines[-1], Facts, _MOST_JSON)


def look_at(name: str, connection: Connection) -> Facts:
    """The board's facts; DeviceError where it cannot run TVM's runtime."""
    ran = run_probe(connection)
    if ran.status == 127:
        hint = "install it there (Debian: apt-get install python3)"
        raise DeviceError(f"{name} has no python3", hint)
    try:
        facts = facts_of(ran)
    except Refused as error:
        if said := refused_by_shell(connection):
            raise DeviceError(
                f"{name}: its account runs no commands: {said}", GIVE_SHELL
            ) from error
        what = f"{name}: its python3 does not report what machine it is: {last_line(ran)}"
        hint = f"log in by ssh and see what `{PYTHON} -c 'import json'` says"
        raise DeviceError(what, hint) from error
    _check(name, facts)
    return facts


def refused_by_shell(connection: Connection) -> str:
    """The answer to a command of an account without a shell; "" if the account runs commands."""
    ran = connection.run(f"echo {_ECHO}", timeout=_PROBE_SECONDS)
    said = ran.stdout.decode(errors="replace").strip()
    return "" if _ECHO in said else brief(said.splitlines()[-1]) if said else last_line(ran)


def last_line(ran: Ran) -> str:
    """The reason why a command failed: the last line of its stderr, or its exit status."""
    return brief((ran.stderr.strip().splitlines() or [f"status {ran.status}"])[-1])


def numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version: (3, 11) for 3.11.2; () where it is no version."""
    try:
        return tuple(int(word) for word in version.split(".")[:2])
    except ValueError:
        return ()


def _check(name: str, facts: Facts) -> None:
    """DeviceError, with what the user can change, where no wheel can fit or be run."""
    if facts.noexec:
        what = f"{name}: nothing can be run below {facts.cache}: its file system is mounted noexec"
        raise DeviceError(what, MOUNT_EXEC)
    kind, version = facts.libc
    if facts.bits != 64:
        raise DeviceError(
            f"{name} ({facts.machine}) runs a {facts.bits}-bit system, for which TVM's "
            "runtime is not published",
            RUN_64_BITS,
        )
    if facts.implementation not in ("cpython", "cpythonm"):  # m: before 3.8, refused by version
        what = f"{name}: its python3 is {facts.implementation}, and not plain CPython"
        hint = "install CPython as `python3` on the board"
        raise DeviceError(what, hint)
    if kind != "glibc" or numbers(version) < OLDEST_GLIBC:
        have = f"glibc {version}" if kind == "glibc" else "another C library than glibc"
        hint = "run a newer system on the board (Debian 10, Ubuntu 18.10 or later)"
        raise DeviceError(f"{name} has {have}, and TVM's runtime needs glibc 2.28 or newer", hint)
