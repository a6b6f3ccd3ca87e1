"""Frames between the host and the agent on a board: a JSON object, followed by bytes.

    head (two 32-bit lengths, big endian) | JSON | bytes

A frame that is too long is refused by its head, before the rest is read. The agent's first bytes
are a mark: text that a login script printed before it is skipped.
"""

import json
import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar

MARK = b"\0ansor-deploy agent 1\n"
CHUNK = 1 << 18  # bytes of a file in one frame: each is answered before the next is sent
_HEAD = struct.Struct(">II")
_MOST_MARKLESS = 1 << 20

Message = TypeVar("Message")


class FrameError(ValueError):
    """The received bytes are no frame, or a forbidden one."""


def pack(message: dict[str, Any], data: bytes = b"") -> bytes:
    """The bytes of one frame. Characters that UTF-8 cannot encode become question marks."""
    text = json.dumps(message, ensure_ascii=False).encode(errors="replace")
    return _HEAD.pack(len(text), len(data)) + text + data


class Unpacker(Generic[Message]):
    """Splits received bytes into frames, each a message and its bytes.

    read: makes a message from JSON text, or raises ValueError. most: the most bytes of such a text.
    marked: whether the mark comes first, perhaps after some noise.
    """

    def __init__(self, read: Callable[[bytes], Message], most: int, marked: bool = False) -> None:
        self._read, self._most = read, most
        self._buffer = bytearray()
        self._awaits_mark = marked

    @property
    def noise(self) -> bytes:
        """The text that came instead of the mark."""
        return bytes(self._buffer).strip() if self._awaits_mark else b""

    def feed(self, data: bytes) -> list[tuple[Message, bytes]]:
        """The frames that these bytes complete; ValueError where they are invalid."""
        self._buffer += data
        if self._awaits_mark:
            at = self._buffer.find(MARK)
            if at < 0 and len(self._buffer) > _MOST_MARKLESS:
                what = "a long text instead of the agent's first words: does a login script print"
                raise FrameError(f"{what} without end (~/.bashrc, ~/.profile)?")
            if at < 0:
                return []
            del self._buffer[: at + len(MARK)]
            self._awaits_mark = False
        return [*iter(self._next, None)]

    def _next(self) -> tuple[Message, bytes] | None:
        if len(self._buffer) < _HEAD.size:
            return None
        text, data = _HEAD.unpack_from(self._buffer)
        if text > self._most or data > CHUNK:
            raise FrameError(f"a frame of {text} and {data} bytes")
        end = _HEAD.size + text + data
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_HEAD.size : end])
        del self._buffer[:end]
        return self._read(body[:text]), body[text:]
