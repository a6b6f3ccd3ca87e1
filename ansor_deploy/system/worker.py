"""A warm child process that answers calls, and that can be killed at any time without harm.

Parent and child exchange JSON over a socket pair: nothing is unpickled, and a child out of control
can at worst send what does not parse. The child leads its own session: Ctrl-C in the terminal
reaches the parent alone, and killing the child's process group also ends what it has started.
"""

import contextlib
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..errors import MachineError
from . import machine_fault

# The search path is the parent's, set before any import: the child finds the same packages, and
# imports nothing from the current folder.
_BOOT = (
    "import sys; sys.path[:] = {path!r}; "
    "from ansor_deploy.system.child import serve; serve({fd}, {parent}, {preload!r})"
)
_START_SECONDS = 120.0  # how long a child may take to become ready
_GLANCE_SECONDS = 0.5  # between two looks at whether the child has ended
_MAX_REPLY_BYTES = 1 << 24  # of a message of the child
_STALLED = struct.pack("@ll", 10, 0)  # seconds and microseconds that a message may pause for
_TAIL_BYTES = 2000  # of a dead child's output, for the message
_END_SECONDS = 15.0  # how long a child may take to end once its socket is closed
# Signals from outside: the system, short of memory, or a person sends them, not a task's program.
_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT}


class WorkerFailure(Exception):  # noqa: N818 - the established term: an outcome, not our error
    """A call did not end well. kind: "raised", "timeout" or "crash".

    frames: those of the child where it raised, which follow in a traceback since Python 3.11.
    """

    def __init__(self, kind: str, message: str, frames: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        if frames:
            self.__notes__ = [f"in the worker process:\n{frames}"]


class Worker:
    """A child process that `start` starts in the background, and again after it was killed.

    preload: the module that the child imports as it starts. env: variables of the child beyond the
    parent's, such as TVM_NUM_THREADS.
    """

    def __init__(self, preload: str, env: Mapping[str, str] | None = None) -> None:
        self._env = env or {}
        self._preload = preload
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._ready = False
        self._interrupted = False
        self._output = _append_only()

    def start(self) -> None:
        """Start the child unless it runs; it imports its modules while the parent goes on."""
        if self._process is not None and self._process.poll() is None:
            return
        self.kill()
        self._interrupted = False
        ours, theirs = socket.socketpair()
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            ours.setsockopt(socket.SOL_SOCKET, option, _STALLED)
        with theirs:
            path = [str(Path(entry).resolve()) for entry in sys.path if entry]
            boot = _BOOT.format(
                path=path, fd=theirs.fileno(), parent=os.getpid(), preload=self._preload
            )
            alone = ["-I", "-S", "-B"] if sys.flags.no_site else []  # with the parent's own setting
            self._process = subprocess.Popen(
                [sys.executable, *alone, "-c", boot],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **self._env},
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())

    def call(
        self,
        function: str,
        payload: dict[str, Any],
        timeout: float,
        on_ask: Callable[[Any], Any] | None = None,
    ) -> Any:
        """The answer of `function` ("module:name") of the child's side to the payload.

        timeout: seconds, without those of the child's start. on_ask: answers what the function asks
        meanwhile (`child.ask`); if it raises ValueError, so does `ask`. WorkerFailure where the
        function raised, crashed or was killed at the deadline; MachineError where the machine
        failed and not the function, or the child cannot start at all. If the child is killed from
        outside, the call is repeated once, unless `on_ask` is given.
        """
        try:
            return self._called(function, payload, timeout, on_ask)
        except _KilledError as killed:
            if on_ask is not None:
                raise WorkerFailure("crash", str(killed)) from killed
        try:
            return self._called(function, payload, timeout, on_ask)
        except _KilledError as killed:
            what = f"a worker process was killed twice, and not by this program: {killed}"
            raise machine_fault.killed(what) from killed

    def printed(self, start: int = 0) -> bytes:
        """What the child has printed during the last call, from byte `start` on.

        A negative `start` counts from the end.
        """
        size = os.fstat(self._output).st_size
        begin = start if start >= 0 else max(0, size + start)
        return os.pread(self._output, max(0, size - begin), begin)

    def interrupt(self) -> None:
        """Kill the child and all that it started; a thread waiting for an answer sees a crash."""
        self._interrupted = True
        if (process := self._process) is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def call_off(self) -> None:
        """Ask the running function to end, by SIGTERM: for functions that handle it."""
        self._interrupted = True
        if (process := self._process) is not None:
            process.terminate()

    def kill(self) -> None:
        """End the child and all that it started, now. The next call starts a fresh one."""
        self.interrupt()
        if self._process is not None:
            self._process.wait()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None
        self._ready = False

    def close(self) -> None:
        """Kill the child and drop its output. The worker cannot be used afterwards."""
        self.kill()
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    @property
    def _socket(self) -> Connection:
        if self._connection is None:
            raise WorkerFailure("crash", "the worker process is gone")
        return self._connection

    def _called(
        self,
        function: str,
        payload: dict[str, Any],
        timeout: float,
        on_ask: Callable[[Any], Any] | None,
    ) -> Any:
        try:
            self._begin(function, payload)
            return self._answer(timeout, on_ask or (lambda asked: None))
        except WorkerFailure:
            raise
        except BaseException as error:  # interrupted: nobody waits for the answer any more
            self.kill()
            machine_fault.raise_if_fault(error)
            raise

    def _begin(self, function: str, payload: dict[str, Any]) -> None:
        """Send a request to the child, once it is ready."""
        self.start()
        self._await_ready()
        os.ftruncate(self._output, 0)
        with contextlib.suppress(OSError):  # `_message` notices a child that has died
            self._socket.send_bytes(json.dumps([function, payload]).encode())

    def _answer(self, timeout: float, on_ask: Callable[[Any], Any]) -> Any:
        """The answer to the request that was sent; raises as `call` does."""
        deadline = time.monotonic() + timeout
        while (message := self._message(deadline, timeout))[0] == "asks":
            with contextlib.suppress(OSError):  # as in `_begin`
                self._socket.send_bytes(json.dumps(_answered(on_ask, message[1])).encode())
        status, value = message
        if status == "machine":
            raise MachineError(*value)
        if status != "ok":
            raise WorkerFailure("raised", *value)
        return value

    def _message(self, deadline: float, timeout: float) -> tuple[str, Any]:
        """The next message of the child: its kind and content."""
        while not self._socket.poll(min(_GLANCE_SECONDS, max(0.0, deadline - time.monotonic()))):
            if self._process is not None and self._process.poll() is not None:
                raise WorkerFailure("crash", self._bury())  # others may hold its socket
            if time.monotonic() >= deadline:
                self.kill()
                raise WorkerFailure("timeout", f"killed after {timeout:.3g} s")
        try:
            kind, content = json.loads(self._socket.recv_bytes(_MAX_REPLY_BYTES))
        except (EOFError, OSError, TypeError, ValueError) as error:
            raise WorkerFailure("crash", self._bury()) from error
        return kind, content

    def _await_ready(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            if not self._ready and self._socket.poll(_START_SECONDS):
                self._ready = bool(self._socket.recv_bytes(64))
        if not self._ready:
            hint = "run `ansor-deploy doctor`: it imports TVM as the worker does"
            raise MachineError(f"a worker process could not start: {self._bury()}", hint)

    def _bury(self) -> str:
        """The cause of the child's death, with the end of its output.

        Raises _KilledError or MachineError where the cause is not what the child did.
        """
        status = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                # The socket closes before the process has ended, which takes a while on a busy
                # machine.
                status = self._process.wait(timeout=_END_SECONDS)
        killed = not self._interrupted and -(status or 0) in _FROM_OUTSIDE
        self.kill()
        tail = self.printed(-_TAIL_BYTES)
        lines = tail.decode(errors="replace").strip().splitlines()[-5:]
        text = ": ".join([_cause(status), *([" | ".join(lines)] if lines else [])])
        if killed:
            raise _KilledError(text)
        if machine_fault.errno_in(text) == errno.ENOMEM and _address_space_is_limited():
            raise machine_fault.fault(errno.ENOMEM)
        return text


class _KilledError(Exception):
    """The child was ended by a signal that neither it nor this process sent."""


def _answered(on_ask: Callable[[Any], Any], asked: Any) -> tuple[str, Any]:
    try:
        return "ok", on_ask(asked)
    except ValueError as error:
        return "raised", str(error)


def _append_only() -> int:
    """A nameless file in append mode, so that truncating it leaves no hole before new data."""
    descriptor, path = tempfile.mkstemp(prefix="ansor-deploy-")
    os.unlink(path)  # noqa: PTH108
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
    return descriptor


def _address_space_is_limited() -> bool:
    """Whether the user limits it (ulimit -v): that limit may be reached before the child's own."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _cause(status: int | None) -> str:
    if status is None:
        return "its connection broke"
    if status >= 0:
        return f"exit status {status}"
    names = {one.value: one.name for one in signal.Signals}
    return names.get(-status, f"signal {-status}")
