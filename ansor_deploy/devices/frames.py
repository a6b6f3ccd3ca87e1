"""What the host and the agent on a board send each other: a JSON object, and bytes with it.

    head (two 32-bit lengths, big endian) | JSON | bytes

Both sides refuse a frame that is longer than any they send. The agent's first bytes are a mark:
what a login script printed before it is no frame.
"""

import json
import struct
from typing import Any

Frame = tuple[dict[str, Any], bytes]
MARK = b"\0ansor-deploy agent 1\n"
CHUNK = 1 << 18  # bytes of a file in one frame: each is answered before the next is sent
_HEAD = struct.Struct(">II")
_MOST_JSON = 1 << 24
_MOST_MARKLESS = 1 << 16


class FrameError(ValueError):
    """The bytes that came are no frame."""


def pack(message: dict[str, Any], data: bytes = b"") -> bytes:
    """The bytes of one frame."""
    text = json.dumps(message).encode()
    return _HEAD.pack(len(text), len(data)) + text + data


class Unpacker:
    """Makes frames of bytes as they come. marked: the mark comes first, after some noise."""

    def __init__(self, marked: bool = False) -> None:
        self._buffer = bytearray()
        self._awaits_mark = marked

    @property
    def noise(self) -> str:
        """What came instead of the mark."""
        return self._buffer.decode(errors="replace").strip() if self._awaits_mark else ""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete; ValueError where they cannot be any."""
        self._buffer += data
        if self._awaits_mark:
            at = self._buffer.find(MARK)
            if at < 0 and len(self._buffer) > _MOST_MARKLESS:
                raise FrameError("a long text instead of the agent's first words")
            if at < 0:
                return []
            del self._buffer[: at + len(MARK)]
            self._awaits_mark = False
        return [*iter(self._next, None)]

    def _next(self) -> Frame | None:
        if len(self._buffer) < _HEAD.size:
            return None
        text, data = _HEAD.unpack_from(self._buffer)
        if text > _MOST_JSON or data > CHUNK:
            raise FrameError(f"a frame of {text} and {data} bytes")
        end = _HEAD.size + text + data
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_HEAD.size : end])
        del self._buffer[:end]
        message = json.loads(body[:text])
        if not isinstance(message, dict):
            raise FrameError("a frame without an object")
        return message, body[text:]
