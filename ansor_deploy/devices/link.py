"""The host's end of the stream to an agent: requests, answers, and a watch over its life."""

import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from ..errors import DeviceError, DeviceLost
from .connection import Stream
from .frames import Frame, Unpacker, pack

PING_SECONDS = 5.0
START_SECONDS = 120.0  # of Python on a slow board
SILENCE_SECONDS = 60.0  # without a byte, the other side is believed to be gone
_HINT = "check the board's power and network, then repeat the command"


class Link:
    """Sends requests to an agent, one at a time, from any thread. name: of the board.

    folder: of this session's files on the board, once the agent has greeted. Every failure is a
    DeviceLost, after which the link is of no more use.
    """

    def __init__(self, name: str, stream: Stream, ping: float = PING_SECONDS) -> None:
        self.folder = ""
        self._name = name
        self._stream = stream
        self._ping = ping
        self._asking, self._writing = threading.Lock(), threading.Lock()
        self._numbers = itertools.count(1)
        self._arrived: queue.Queue[Frame | None] = queue.Queue()
        self._lost = ""
        self._ended = threading.Event()
        self._unpacker = Unpacker(marked=True)
        for loop in (self._listen, self._keep_alive):
            threading.Thread(target=loop, daemon=True).start()

    def greeting(self, patience: float, waiting: Callable[[str], None]) -> dict[str, Any]:
        """What the agent says of itself once the board is ours.

        waiting: called with who has the board, while another has it; DeviceError where it still
        has after `patience` seconds.
        """
        deadline, holder = time.monotonic() + START_SECONDS, ""
        while True:
            try:
                message, _ = self._next(max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                if not holder:
                    raise self._lose(f"no agent in {START_SECONDS:.0f} s") from None
                self.close()
                what = f"{self._name} is in use by {holder}, {patience:.0f} s after the first try"
                hint = "wait for that to end, or stop it on the board"
                raise DeviceError(what, hint) from None
            if "hello" in message:
                self.folder = message["hello"]["session"]
                return dict(message["hello"])
            if not holder:
                deadline = time.monotonic() + patience
            holder = str(message["waiting"])
            waiting(holder)

    def ask(self, do: str, limit: float, data: bytes = b"", **words: Any) -> Frame:
        """The agent's answer within `limit` seconds: an object with "ok" or "error", and bytes."""
        with self._asking:
            number = next(self._numbers)
            self._write(pack({"id": number, "do": do, **words}, data))
            deadline = time.monotonic() + limit
            while True:
                try:
                    message, blob = self._next(max(deadline - time.monotonic(), 0.0))
                except queue.Empty:
                    raise self._lose(f"no answer in {limit:.0f} s") from None
                if message.get("id") == number:  # and not that of a call that was interrupted
                    return message, blob

    def close(self) -> None:
        """Hang up: the agent ends. From any thread, and more than once."""
        self._lose("the connection was closed")

    def _next(self, timeout: float) -> Frame:
        if self._lost:
            raise self._error()
        if (frame := self._arrived.get(timeout=timeout)) is None:
            self._arrived.put(None)  # for whoever asks next
            raise self._error()
        return frame

    def _write(self, data: bytes) -> None:
        if self._lost:
            raise self._error()
        try:
            with self._writing:
                self._stream.write(data, SILENCE_SECONDS)
        except (OSError, DeviceLost) as error:
            raise self._lose(str(error)) from error

    def _listen(self) -> None:
        try:
            while data := self._stream.read(1 << 16, SILENCE_SECONDS):
                for frame in self._unpacker.feed(data):
                    if frame[0].get("id") != 0:
                        self._arrived.put(frame)
            self._ended.wait(0.2)  # its last words may come a moment later
            self._lose("its agent ended" + self._last_words())
        except TimeoutError:
            self._lose(f"not a byte in {SILENCE_SECONDS:.0f} s")
        except (OSError, ValueError, DeviceLost) as error:
            self._lose(str(error))

    def _last_words(self) -> str:
        said = (self._stream.complaint().strip() or self._unpacker.noise).splitlines()
        return f": {' | '.join(said[-3:])}" if said else ""

    def _keep_alive(self) -> None:
        with contextlib.suppress(DeviceLost):  # whoever asks next gets it, too
            while not self._ended.wait(self._ping):
                self._write(pack({"id": 0, "do": "ping"}))

    def _lose(self, reason: str) -> DeviceLost:
        """The first reason counts: what follows is its consequence."""
        if not self._lost:
            self._lost = reason
            self._ended.set()
            self._arrived.put(None)
            self._stream.close()
        return self._error()

    def _error(self) -> DeviceLost:
        return DeviceLost(f"{self._name} is lost: {self._lost}", _HINT)
