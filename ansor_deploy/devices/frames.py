"""What the host and the agent on a board send each other: a JSON object, and bytes with it.

    head (two 32-bit lengths, big endian) | JSON | bytes

A frame that is longer than any that the other side sends is refused by its head, before the rest is
read. The agent's first bytes are a mark: what a login script printed before it is no frame.
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
    """The bytes that came are no frame, or none that may come."""


def pack(message: dict[str, Any], data: bytes = b"") -> bytes:
    """The bytes of one frame. What UTF-8 cannot hold becomes a question mark."""
    text = json.dumps(message, ensure_ascii=False).encode(errors="replace")
    return _HEAD.pack(len(text), len(data)) + text + data


class Unpacker(Generic[Message]):
    """Makes frames of bytes as they come: a message and bytes each.

    read: makes a message of JSON text, or raises ValueError. most: the length of such a text, in
    bytes. marked: the mark comes first, after some noise.
    """

    def __init__(self, read: Callable[[bytes], Message], most: int, marked: bool = False) -> None:
        self._read, self._most = read, most
        self._buffer = bytearray()
        self._awaits_mark = marked

    @property
    def noise(self) -> bytes:
        """What came instead of the mark."""
        return bytes(self._buffer).strip() if self._awaits_mark else b""

    def feed(self, data: bytes) -> list[tuple[Message, bytes]]:
        """The frames that these bytes complete; ValueError where they cannot be any."""
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
