"""The host's end of the stream to an agent: requests, answers, and a watch over its life."""

import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Callable

from ..errors import DeviceError, DeviceLost
from ..system.untrusted import brief
from .answers import MOST_JSON, Answer, Failure, Hello, Said, Waiting, read
from .connection import Stream
from .frames import FrameError, Unpacker, pack

PING_SECONDS = 5.0
START_SECONDS = 60.0  # the limit for Python to start on a slow board
SILENCE_SECONDS = 60.0  # after so long without a byte, the other side counts as gone
_PING = 0  # the id of every ping
# The most unexpected frames of a session: waiting messages, and answers that come too late.
_MOST_UNASKED = 200
_LOGIN = "does a login script wait for something there (~/.bashrc, ~/.profile)?"
_HINT = "check the board's power and network, then repeat the command"

Answered = tuple[Answer | Failure, bytes]


class AgentClient:
    """Sends requests to an agent, one at a time, from any thread. name: that of the board.

    folder: the folder of this session's files on the board, once the agent has greeted. Every
    failure is a DeviceLost, after which the client cannot be used any more. Unexpected frames are
    dropped; many of them are a failure.
    """

    def __init__(self, name: str, stream: Stream, ping: float = PING_SECONDS) -> None:
        self.folder = ""
        self._name = name
        self._stream = stream
        self._ping = ping
        self._asking, self._writing = threading.Lock(), threading.Lock()
        self._numbers = itertools.count(_PING + 1)
        self._awaited = _PING
        self._greeted = False
        self._pings = self._pongs = self._unasked = 0
        self._arrived: queue.Queue[tuple[Said, bytes] | None] = queue.Queue()
        self._lost = ""
        self._ended = threading.Event()
        self._unpacker = Unpacker(read, MOST_JSON, marked=True)
        for loop in (self._listen, self._keep_alive):
            threading.Thread(target=loop, daemon=True).start()

    def greeting(self, patience: float, waiting: Callable[[str], None]) -> Hello:
        """The agent's greeting, which comes once the board is ours.

        waiting: called with the holder while another has the board; DeviceError where another still
        has it after `patience` seconds.
        """
        deadline, holder = time.monotonic() + START_SECONDS, None
        while True:
            try:
                said, _ = self._next(max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                if holder is None:
                    what = f"no agent in {START_SECONDS:.0f} s{self._last_words()}"
                    raise self._lose(f"{what}; {_LOGIN}") from None
                self.close()
                what = f"{self._name} is in use by {holder}, {patience:.0f} s after the first try"
                hint = "wait for that to end, or stop it on the board"
                raise DeviceError(what, hint) from None
            if isinstance(said, Hello):
                self.folder = said.session
                return said
            if isinstance(said, Waiting) and brief(said.holder) != holder:
                if holder is None:
                    deadline = time.monotonic() + patience
                holder = brief(said.holder)
                waiting(holder)

    def ask(self, do: str, limit: float, data: bytes = b"", **words: object) -> Answered:
        """The agent's answer within `limit` seconds, and bytes."""
        with self._asking:
            self._awaited = number = next(self._numbers)
            self._write(pack({"id": number, "do": do, **words}, data))
            deadline = time.monotonic() + limit
            while True:
                try:
                    said, blob = self._next(max(deadline - time.monotonic(), 0.0))
                except queue.Empty:
                    raise self._lose(f"no answer in {limit:.0f} s") from None
                # Ignore the late answer of an interrupted call.
                if isinstance(said, (Answer, Failure)) and said.id == number:
                    return said, blob

    def refuse(self, reason: str) -> DeviceLost:
        """End the session of a board that gives a forbidden answer."""
        return self._lose(f"its agent answers nonsense: {reason}")

    def close(self) -> None:
        """Hang up: the agent ends. From any thread, and more than once."""
        self._lose("the connection was closed")

    def _next(self, timeout: float) -> tuple[Said, bytes]:
        if self._lost:
            raise self._error()
        if (heard := self._arrived.get(timeout=timeout)) is None:
            self._arrived.put(None)  # so that the next caller gets the error as well
            raise self._error()
        return heard

    def _write(self, data: bytes) -> None:
        if self._lost:
            raise self._error()
        try:
            with self._writing:
                self._stream.write(data, SILENCE_SECONDS)
        except (OSError, DeviceLost) as error:
            raise self._lose(brief(str(error))) from error

    def _listen(self) -> None:
        try:
            while data := self._stream.read(1 << 16, SILENCE_SECONDS):
                for said, blob in self._unpacker.feed(data):
                    self._take(said, blob)
            self._ended.wait(0.2)  # its last words may come a moment later
            self._lose("its agent ended" + self._last_words())
        except TimeoutError:
            self._lose(f"not a byte in {SILENCE_SECONDS:.0f} s")
        except (OSError, DeviceLost) as error:
            self._lose(brief(str(error)))
        except Exception as error:  # noqa: BLE001 - callers must not wait for a dead thread
            self._lose(f"its agent speaks nonsense: {brief(str(error) or repr(error))}")

    def _take(self, said: Said, blob: bytes) -> None:
        """Keep an expected frame; FrameError where too many unexpected ones come."""
        if self._is_pong(said):
            return None
        if not self._greeted and isinstance(said, (Hello, Waiting)):
            self._greeted = isinstance(said, Hello)
        elif isinstance(said, (Answer, Failure)) and said.id == self._awaited != _PING:
            self._awaited = _PING
        else:
            return self._count_unasked()
        if isinstance(said, Waiting):
            self._count_unasked()
        return self._arrived.put((said, blob))

    def _is_pong(self, said: Said) -> bool:
        asked = isinstance(said, Answer) and said.id == _PING and self._pongs < self._pings
        self._pongs += asked
        return asked

    def _count_unasked(self) -> None:
        self._unasked += 1
        if self._unasked > _MOST_UNASKED:
            raise FrameError("much that nobody asked for")

    def _last_words(self) -> str:
        words = self._stream.complaint() or self._unpacker.noise.decode(errors="replace")
        said = [brief(line) for line in words.strip().splitlines()[-3:]]
        return f": {' | '.join(said)}" if said else ""

    def _keep_alive(self) -> None:
        with contextlib.suppress(DeviceLost):  # the next caller gets it as well
            while not self._ended.wait(self._ping):
                self._pings += 1
                self._write(pack({"id": _PING, "do": "ping"}))

    def _lose(self, reason: str) -> DeviceLost:
        """End the session. The first reason is kept, since later ones follow from it."""
        if not self._lost:
            self._lost = reason
            self._ended.set()
            self._arrived.put(None)
            self._stream.close()
        return self._error()

    def _error(self) -> DeviceLost:
        return DeviceLost(f"{self._name} is lost: {self._lost}", _HINT)
