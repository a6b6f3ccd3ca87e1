"""Commands over one SSH connection that is watched, so that nothing waits for ever.

A connection is given up when it was silent for `SILENT_SECONDS` although the other side was asked
for a sign of life every `ASK_SECONDS`: a board that lost its power or its network closes no socket.
Closing the transport wakes all threads that wait on it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import paramiko

from ..errors import DeviceError, DeviceLost
from ..system.printable import printable
from ..system.untrusted import brief
from .connection import Ran
from .known_hosts import HostKey
from .ssh_config import Route

ASK_SECONDS = 5.0
SILENT_SECONDS = 15
_OPEN_SECONDS = 15.0
_TICK_SECONDS = 0.1  # how late a time-out may be noticed; data is noticed at once
_BLOCK = 1 << 15  # bytes that one SSH packet carries
_STDERR_BLOCKS = 8
_MOST_STDOUT = 1 << 20  # bytes that `run` accepts: its commands have short answers
_MOST_PACKET = 1 << 18  # bytes of an SSH packet, as OpenSSH has it
_GONE = (paramiko.SSHException, EOFError, OSError)


class Line:
    """A socket, or a channel through a jump host, that counts the bytes it has received."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self.heard = 0

    def recv(self, count: int) -> bytes:
        """Receive as a socket does. Paramiko asks for as many bytes as a packet claims to have."""
        if count > _MOST_PACKET:
            raise EOFError(f"an SSH packet of {count} bytes")  # paramiko fails on our OSError
        data: bytes = self._sock.recv(count)
        self.heard += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


class SshStream:
    """A started command, which is a `connection.Stream`."""

    def __init__(self, channel: paramiko.Channel, name: str) -> None:
        self._channel = channel
        self._name = name
        # One time-out for both directions, since a reader and a writer would change each other's.
        channel.settimeout(_TICK_SECONDS)
        self._stderr: deque[bytes] = deque(maxlen=_STDERR_BLOCKS)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def read(self, count: int, timeout: float) -> bytes:
        """Up to `count` bytes of stdout; b"" at the end; TimeoutError where none came."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                data: bytes = self._channel.recv(count)
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise
                continue
            if not data and not self._ended():
                raise lost(self._name)
            return data

    def write(self, data: bytes, timeout: float) -> None:
        """Write all data to stdin; DeviceLost where it is not accepted in time."""
        deadline = time.monotonic() + timeout
        view = memoryview(data)
        while view:
            try:
                sent = self._channel.send(bytes(view[:_BLOCK]))
            except TimeoutError as error:
                if time.monotonic() >= deadline:
                    raise lost(self._name, f"took no data for {timeout:.0f} s") from error
                continue
            except _GONE as error:
                raise lost(self._name) from error
            if not sent:
                raise lost(self._name)
            view = view[sent:]

    def complaint(self) -> str:
        """The end of stderr so far."""
        said = b"".join(tuple(self._stderr)).decode(errors="replace")
        return printable(said, keep="\n\t")

    def close(self) -> None:
        """Close stdin and stdout; most programs then end."""
        with suppress(*_GONE):
            self._channel.close()

    def finish(self, stdin: bytes, timeout: float) -> Ran:
        """Write all of stdin, read all of stdout, and wait for the command's end."""
        deadline = time.monotonic() + timeout
        # Done at the same time: the command may write before it has read everything.
        threading.Thread(target=self._feed, args=(stdin, timeout), daemon=True).start()
        stdout = bytearray()
        try:
            while block := self.read(_BLOCK * 8, max(0.001, deadline - time.monotonic())):
                stdout += block
                if len(stdout) > _MOST_STDOUT:
                    hint = "See what runs there: it should answer briefly."
                    raise DeviceError(f"{self._name}: a command's output does not end", hint)
            if not self._channel.status_event.wait(max(0.001, deadline - time.monotonic())):
                raise TimeoutError  # noqa: TRY301 - the same end as that of the reads
        except TimeoutError as error:
            what = f"a command did not end within {timeout:.0f} s"
            raise lost(self._name, what) from error
        finally:
            self.close()
        self._listener.join(1)
        status = self._channel.exit_status
        return Ran(status if status in range(256) else -1, bytes(stdout), self.complaint())

    def _feed(self, stdin: bytes, timeout: float) -> None:
        with suppress(DeviceLost, *_GONE):  # a command need not read its stdin to succeed
            self.write(stdin, timeout)
            self._channel.shutdown_write()

    def _listen(self) -> None:
        """Keep reading stderr: unread, it would fill the window that stdout shares."""
        while True:
            try:
                block = self._channel.recv_stderr(_BLOCK)
            except TimeoutError:
                continue
            if not block:
                return
            self._stderr.append(block)

    def _ended(self) -> bool:
        """Whether the command closed its stdout, and not the connection."""
        return bool(self._channel.eof_received or self._channel.exit_status != -1)


@dataclass(frozen=True)
class Peer:
    """A machine that answered at a device's address, and is not yet known to be the device.

    under: the connection to the jump host that carries this one.
    """

    transport: paramiko.Transport
    line: Line
    key: HostKey
    route: Route
    under: SshConnection | None

    def close(self) -> None:
        """Hang up, here and at the jump host."""
        with suppress(*_GONE):
            self.transport.close()
        if self.under is not None:
            self.under.close()


class SshConnection:
    """An SSH connection to a peer that proved to be the device; it is a `connection.Connection`.

    name: the device, for messages.
    """

    def __init__(self, peer: Peer, name: str) -> None:
        self.name = name
        self.host_key = peer.key
        self._peer = peer
        self._transport = peer.transport
        self._closed = threading.Event()
        for watch in (self._ask, self._heed):
            threading.Thread(target=watch, daemon=True).start()

    def run(self, command: str, stdin: bytes = b"", timeout: float = 90.0) -> Ran:
        """Run a shell command to its end, within `timeout` seconds."""
        return self.open(command).finish(stdin, timeout)

    def open(self, command: str) -> SshStream:
        """Start a shell command and talk to it."""
        try:
            channel = self._transport.open_session(timeout=_OPEN_SECONDS)
            late = threading.Timer(_OPEN_SECONDS, channel.close)  # or paramiko waits for ever
            late.daemon = True
            late.start()
            try:
                channel.exec_command(command)
            finally:
                late.cancel()
        except paramiko.ChannelException as error:
            hint = "Its SSH server must allow sessions, several at once: look at its log."
            what = f"{self.name}: allows no session: {brief(error.text)}"
            raise DeviceError(what, hint) from error
        except _GONE as error:
            if self._transport.is_active():
                raise lost(self.name, "it does not start a command") from error
            raise lost(self.name) from error
        return SshStream(channel, self.name)

    def tunnel(self, host: str, port: int, timeout: float) -> paramiko.Channel:
        """A channel to a host that this one can reach; DeviceLost where it cannot."""
        try:
            return self._transport.open_channel(
                "direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=timeout
            )
        except _GONE as error:
            what = f"no way on to {host}:{port}: {error}"
            raise lost(self.name, what) from error

    def close(self) -> None:
        """Hang up, here and at the jump host."""
        self._closed.set()
        self._peer.close()

    def _ask(self) -> None:
        """Ask for a sign of life again and again; an answer of any kind is one."""
        with suppress(*_GONE):
            while self._transport.is_active() and not self._closed.wait(ASK_SECONDS):
                self._transport.global_request("keepalive@openssh.com", wait=True)

    def _heed(self) -> None:
        """Close the transport after too many silent seconds.

        Seconds are counted, not read from a clock: none passes while this process is stopped.
        """
        line = self._peer.line
        silent, heard = 0, line.heard
        while self._transport.is_active() and not self._closed.wait(1):
            silent = silent + 1 if line.heard == heard else 0
            heard = line.heard
            if silent >= SILENT_SECONDS:
                self._transport.close()


def lost(name: str, what: str = "the connection was lost") -> DeviceLost:
    """The error of a device that is no longer there."""
    hint = f"Look at its power and network, then: ansor-deploy devices doctor {name}"
    return DeviceLost(f"{name}: {brief(what)}", hint)
