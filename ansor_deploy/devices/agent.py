"""The agent on a board: it takes frames from stdin, lets a worker run candidates, and answers.

It needs only the standard library and our own worker. It serves one host at a time; the next one
waits, and is told who has the board. The agent ends when stdin ends, or when nothing came for a
while; it then kills the worker, even during a call, and removes its folder. It opens no port.

`answers.py` declares what it sends. Requests, {"id", "do", ...}, are each answered once:

    ping                                answered at once, also during other requests
    call      function payload timeout  as `Worker.call`; errors: "raised", "timeout", "crash"
    append    name, data                append to a file of the session's folder
    read      place offset              up to a chunk of a file; empty at its end
    drop      place                     remove a file, if it is there
    restart                             kill the worker and start a fresh one
"""

import contextlib
import fcntl
import json
import os
import platform
import queue
import secrets
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

from ..errors import AnsorError
from ..system import fence
from ..system.lock_file import open_lock
from ..system.machine_fault import about, fault_of
from ..system.worker import Worker, WorkerFailure
from .frames import CHUNK, MARK, FrameError, Unpacker, pack

Request = dict[str, Any]

_SESSION = "session-"
_MOST_JSON = 1 << 24  # bytes of a request, which may hold a whole manifest
_REPEAT_SECONDS = 5.0


def main(folder: str, runs: str, cores: int, silence: float) -> None:
    """Serve the host at the other end of stdin and stdout; never returns.

    folder: where the sessions' folders lie. runs: the module that the worker imports. silence:
    seconds without a byte from the host, after which the host counts as gone.
    """
    source, sink = os.dup(0), os.dup(1)  # not inherited by child processes
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # printed text goes to the log and never into a frame
    session = Path(folder).resolve() / f"{_SESSION}{secrets.token_hex(4)}"
    worker = Worker(runs, {"TVM_NUM_THREADS": str(cores), fence.VARIABLE: str(session)})
    _Agent(session, worker, silence, source, sink).serve()


class _Agent:
    def __init__(
        self, session: Path, worker: Worker, silence: float, source: int, sink: int
    ) -> None:
        self._session, self._worker = session, worker
        self._folder = session.parent
        self._silence = silence
        self._source, self._sink = source, sink
        self._writing = threading.Lock()
        self._heard = time.monotonic()
        self._requests: queue.Queue[tuple[Request, bytes]] = queue.Queue()

    def serve(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self._end())
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        for loop in (self._listen, self._watch):
            threading.Thread(target=loop, daemon=True).start()
        try:
            self._send(MARK)
            self._take(self._board_lock())
            self._open_session()
            while True:
                self._answer(*self._requests.get())
        except OSError as error:  # from the lock, or a home folder that cannot be written
            os.write(2, f"{_reason(error)}\n".encode())
        finally:
            self._end()

    def _listen(self) -> None:
        """Read frames until the host is gone; pings are answered from here."""
        unpacker = Unpacker(_request, _MOST_JSON)
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(self._source, CHUNK):
                self._heard = time.monotonic()
                for message, blob in unpacker.feed(data):
                    if message.get("do") == "ping":
                        self._say("answer", {"id": message["id"], "ok": None})
                    else:
                        self._requests.put((message, blob))
        self._end()

    def _watch(self) -> None:
        while time.monotonic() < self._heard + self._silence:
            time.sleep(min(1.0, self._silence / 4))
        self._end()

    def _board_lock(self) -> int:
        """A descriptor of the file whose lock is the board's, which no other user can open."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        return open_lock(self._folder / "agent.lock")

    def _take(self, lock: int) -> None:
        """Wait until no other agent has the board, and keep telling the host which one has it."""
        said = -_REPEAT_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= said + _REPEAT_SECONDS:
                    said = time.monotonic()
                    holder = os.pread(lock, 200, 0).decode(errors="replace")
                    self._say("waiting", {"holder": holder})
                time.sleep(0.1)
        client = os.environ.get("SSH_CLIENT", "").partition(" ")[0] or "the board itself"
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()}, started from {client}".encode(), 0)

    def _open_session(self) -> None:
        """Make our session's folder, and remove others, which killed agents have left."""
        os.utime(Path(__file__).parents[2])  # the bundle is in use: see `unpack.by_last_use`
        for left in self._folder.glob(f"{_SESSION}*"):
            shutil.rmtree(left, ignore_errors=True)
        self._session.mkdir(0o700)
        self._worker.start()
        here = {"arch": platform.machine(), "python": platform.python_version()}
        self._say("hello", {"session": str(self._session), "pid": os.getpid(), **here})

    def _answer(self, message: Request, blob: bytes) -> None:
        number = message["id"]
        try:
            value, data = self._do(message, blob)
        except WorkerFailure as failure:
            words = {"error": failure.kind, "message": failure.message}
            self._say("failure", {"id": number, **words})
        except (AnsorError, OSError, KeyError, TypeError, ValueError) as error:
            self._say("failure", {"id": number, "error": "board", "message": _reason(error)})
        else:
            self._say("answer", {"id": number, "ok": value}, data)

    def _do(self, message: Request, blob: bytes) -> tuple[Any, bytes]:
        do = message["do"]
        if do == "call":
            try:
                words = (message["function"], message["payload"], message["timeout"])
                return self._worker.call(*words), b""
            finally:
                self._worker.start()  # starts a new one in the background if it was killed
        if do == "read":
            with self._inside(message["place"]).open("rb") as file:
                file.seek(message["offset"])
                return None, file.read(CHUNK)
        if do == "append":
            path = self._inside(message["name"])
            with about(path), path.open("ab") as file:
                file.write(blob)
        elif do == "drop":
            self._inside(message["place"]).unlink(missing_ok=True)
        elif do == "restart":
            self._worker.kill()
            self._worker.start()
        else:
            raise ValueError(f"no such request: {do}")
        return None, b""

    def _inside(self, name: str) -> Path:
        """A file of the session's folder, by its name or its path; ValueError for any other."""
        path = Path(self._session, name).resolve()
        if path.parent != self._session:
            raise ValueError(f"{name} is outside of the session's folder")
        return path

    def _say(self, what: str, words: dict[str, Any], data: bytes = b"") -> None:
        self._send(pack({"says": what, **words}, data))

    def _send(self, data: bytes) -> None:
        try:
            with self._writing:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._sink, view) :]
        except OSError:
            self._end()

    def _end(self) -> None:
        """End everything, from any thread; the worker may be in a call."""
        self._worker.interrupt()
        shutil.rmtree(self._session, ignore_errors=True)
        os._exit(0)


def _reason(error: Exception) -> str:
    """What went wrong, in the same words as a worker's for the same fault."""
    return str(fault_of(error) or error)


def _request(text: bytes) -> Request:
    message = json.loads(text)
    if not isinstance(message, dict) or "id" not in message:
        raise FrameError("a frame without a request")
    return message
