"""Files of web servers, within limits: a server may send without end, slowly, or compressed bombs.

It uses Python's own client, as importing a larger one takes longer than fetching a team's records.
Nothing is unpacked, so no bomb can expand.
"""

from __future__ import annotations

import time
from base64 import b64encode
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from io import BufferedReader, BytesIO, RawIOBase
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urljoin, urlsplit

if TYPE_CHECKING:
    from socket import socket
    from urllib.parse import SplitResult

    from _typeshed import WriteableBuffer
    from typing_extensions import Self

MOST_LISTED = 1 << 24  # bytes of a page that lists bundles
SECONDS = 300.0  # the limit of one answer
_STALLED = 30.0  # seconds without a byte after which a request fails
_MOST_REDIRECTIONS = 10
_PIECE = 1 << 20  # bytes that are read at once
_KINDS: dict[str, type[HTTPConnection]] = {"http": HTTPConnection, "https": HTTPSConnection}
_AS_IT_IS = "/%:=&~+!$,;'@()*"  # in a path that may be quoted already


class WebFiles:
    """Files by their URLs, with methods named like those of fsspec's file systems."""

    def exists(self, url: str) -> bool:
        """Whether the server has an answer other than an error."""
        try:
            self.open(url).close()
        except (FileNotFoundError, _RefusedError):
            return False
        return True

    def cat_file(self, url: str) -> bytes:
        """A page that lists files; OSError where it is longer than that can be."""
        found = bytearray()
        with self.open(url) as stream:
            while piece := stream.read(_PIECE):
                found += piece
                if len(found) > MOST_LISTED:
                    raise OSError(f"it sends more than {MOST_LISTED >> 20} MiB")
        return bytes(found)

    def open(self, url: str, mode: str = "rb") -> _Body:
        """The body of a file."""
        return _Body(_asked("GET", url))

    def pipe_file(self, url: str, content: bytes) -> None:
        """Send a file by PUT."""
        _Body(_asked("PUT", url, content)).close()


class _RefusedError(OSError):
    """A server answers with a status that means an error."""


class _Body:
    """What a server sends, as it comes. To be closed, or used in `with`."""

    def __init__(self, answer: HTTPResponse) -> None:
        self._answer = answer

    def read(self, most: int) -> bytes:
        """The next bytes; b"" at the end. OSError where the server stalls, or ends too early."""
        piece = self._answer.read1(min(most, _PIECE))
        if most and not piece and self._answer.length:
            raise OSError("it has not sent all that it announced")
        return piece

    def close(self) -> None:
        """Close the connection, whatever it would still send."""
        self._answer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _InTime(RawIOBase):
    """A stream that ends with an error once an answer's time is over."""

    def __init__(self, stream: RawIOBase) -> None:
        self._stream = stream
        self._until = time.monotonic() + SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        if time.monotonic() > self._until:
            raise TimeoutError
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Answer(HTTPResponse):
    """An answer of which headers and body have to come in time."""

    def __init__(self, sock: socket, *words: Any, **named: Any) -> None:
        super().__init__(sock, *words, **named)
        self.fp = BufferedReader(_InTime(self.fp.detach()))


def _asked(method: str, url: str, content: bytes = b"") -> HTTPResponse:
    """A server's answer, after redirections; an OSError where it means an error."""
    for _ in range(_MOST_REDIRECTIONS):
        answer = _answer(method, urlsplit(url), content)
        to = answer.getheader("Location", "")
        if answer.status < 300:
            return answer
        answer.close()
        if answer.status in (404, 410):
            raise FileNotFoundError(url)
        if answer.status >= 400 or not to:
            raise _RefusedError(f"it answers {answer.status} {answer.reason}")
        url = urljoin(url, to)
    raise _RefusedError(f"it redirects more than {_MOST_REDIRECTIONS} times")


def _answer(method: str, url: SplitResult, content: bytes) -> HTTPResponse:
    """The answer to one request. The connection ends with it, as every request makes its own."""
    if url.scheme not in _KINDS:
        raise _RefusedError(f"it redirects to {url.scheme}:")
    headers = {"Connection": "close"} | ({"Content-Length": str(len(content))} if content else {})
    if url.username:
        words = f"{unquote(url.username)}:{unquote(url.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(words.encode()).decode()}"
    connection = _KINDS[url.scheme](url.hostname or "", url.port, timeout=_STALLED)
    connection.response_class = _Answer
    path = quote(url.path, safe=_AS_IT_IS) + f"?{url.query}" * bool(url.query)
    # A stream is sent in pieces, each of which may take as long as a stall.
    connection.request(method, path or "/", BytesIO(content) if content else None, headers)
    answer = connection.getresponse()
    if connection.sock:
        connection.sock.close()  # as soon as the answer is closed, which holds it open
    return answer
