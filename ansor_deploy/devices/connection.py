"""A connection to a device, as a protocol: commands with bytes in and out."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Ran:
    """The result of a command. status: its exit status; -1 where it has none."""

    status: int
    stdout: bytes
    stderr: str


class Stream(Protocol):
    """A command that was started on the device. Times are in seconds."""

    def read(self, count: int, timeout: float) -> bytes:
        """Up to `count` bytes of its stdout; b"" at the end; TimeoutError where none came."""

    def write(self, data: bytes, timeout: float) -> None:
        """Write all data to its stdin; DeviceLost when the other side is gone."""

    def complaint(self) -> str:
        """The end of its stderr so far, for messages."""

    def close(self) -> None:
        """Close its stdin and stdout; most programs then end."""


class Connection(Protocol):
    """A connected device. Its methods raise DeviceLost where it no longer answers."""

    def run(self, command: str, stdin: bytes = b"", timeout: float = 90.0) -> Ran:
        """Run a shell command to its end, within `timeout` seconds."""

    def open(self, command: str) -> Stream:
        """Start a shell command and talk to it."""

    def close(self) -> None:
        """Hang up; commands still running lose their streams."""
