"""Replies of a hostile server: a lie turns an honest reply into other bytes, or an endless stream.

A lie gets a random number generator and the reply, and yields the bytes to send, piece by piece.
"""

from __future__ import annotations

import gzip
import random
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import repeat

from benchmarks.fuzz.messages import spoilt_bytes

PIECE = b"<a href='x'>x</a>" * 4096
_BOMB = 1 << 28  # bytes that a small body decompresses to
_MANY = 200_000  # links or characters of a huge listing


@dataclass
class Reply:
    """An honest reply. headers: without Content-Length, which depends on the body."""

    body: bytes
    status: str = "200 OK"
    headers: dict[str, str] = field(default_factory=dict)

    def head(self, *more: bytes) -> bytes:
        """The status line and the headers, followed by given header lines."""
        lines = [f"{name}: {value}".encode() for name, value in self.headers.items()]
        return b"\r\n".join([b"HTTP/1.1 " + self.status.encode(), *lines, *more, b"", b""])

    def whole(self) -> bytes:
        """The reply as an honest server sends it."""
        return self.head(_length(len(self.body))) + self.body


Lie = Callable[[random.Random, Reply], Iterator[bytes]]


def _length(size: object) -> bytes:
    return f"Content-Length: {size}".encode()


def _endless(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    """A body that never ends, without a length, with a huge one, or with the honest one."""
    yield reply.head(*chance.choice(([], [_length(10**15)], [_length(len(reply.body))])))
    yield reply.body
    yield from repeat(PIECE)


def _endless_chunks(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    yield reply.head(b"Transfer-Encoding: chunked")
    yield from repeat(f"{len(PIECE):x}\r\n".encode() + PIECE + b"\r\n")


def _slow(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    """One byte at a time, sometimes from the headers on, or nothing at all."""
    whole = reply.whole()
    pause, start = chance.choice((0.05, 0.4, 3600)), chance.choice((0, whole.index(b"\r\n\r\n")))
    yield whole[:start]
    for at in range(start, len(whole)):
        time.sleep(pause)
        yield whole[at : at + 1]


def _other_length(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    """A wrong or invalid length, sometimes twice."""
    size = len(reply.body)
    lengths = (size + 7, max(0, size - 7), 0, -1, "many", "1e3", 1 << 64, "0x10", "")
    given = [_length(chance.choice(lengths)) for _ in range(chance.choice((1, 1, 2)))]
    yield reply.head(*given) + reply.body


def _broken_chunks(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    yield reply.head(b"Transfer-Encoding: chunked")
    size = f"{len(reply.body):x}".encode()
    chunks: tuple[tuple[bytes, bytes], ...] = (
        (size + b"\r\n" + reply.body[: len(reply.body) // 2], b""),  # cut off
        (b"zz\r\n", b""),
        (b"-1\r\n", b""),
        (b"f" * 40 + b"\r\n" + reply.body, b""),
        (b"", b"0"),  # an endless size
        (size + b";", b"x" * 4096),  # an endless extension
        (size + b"\r\n" + reply.body + b"\r\n0\r\n", b"T: x\r\n" * 512),  # endless trailers
        (size + b"\n" + reply.body + b"\n0\n\n", b""),
    )
    once, forever = chance.choice(chunks)
    yield once
    yield from repeat(forever) if forever else ()


def _packed(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    """A small body that decompresses to a huge one, or is not compressed as it says."""
    how, body = chance.choice((
        ("gzip", _bomb("gzip")), ("deflate", _bomb("deflate")), ("gzip, gzip", _bomb("gzip")),
        ("br", reply.body), ("zstd", reply.body), ("gzip", reply.body), ("nosuch", reply.body),
    ))  # fmt: skip
    yield reply.head(f"Content-Encoding: {how}".encode(), _length(len(body))) + body


@cache
def _bomb(how: str) -> bytes:
    zeros = bytes(_BOMB)
    return gzip.compress(zeros) if how == "gzip" else zlib.compress(zeros)


def _redirect(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    """A redirect to a file, to itself, to nowhere, or to an invalid address."""
    to = chance.choice((
        "file:///etc/passwd", "", "?again", "/records", "http://127.0.0.1:1/", "//localhost:1/x",
        "ftp://127.0.0.1/x", "javascript:alert(1)", "data:,x", "http://[::1", "http://\x7f/",
        "\\\\host\\share", "x" * 100_000, "http://user:secret@127.0.0.1:1/", "http://0x7f.1:1/",
    ))  # fmt: skip
    status = chance.choice((301, 302, 303, 307, 308, 300, 304))
    other = Reply(reply.body, f"{status} Elsewhere", reply.headers)
    yield other.head(b"Location: " + to.encode(), _length(len(reply.body))) + reply.body


def _other_type(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    kinds = (
        *("image/png", "", "text/html; charset=zlib", "text/html; charset=utf-16", "\x01", "a/b;c"),
        *("multipart/x-mixed-replace; boundary=x", "text/html; charset=" + "x" * 1000),
    )
    headers = {"Content-Type": chance.choice(kinds)}
    yield Reply(reply.body, reply.status, headers).whole()


def _odd_headers(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    """Headers with invalid bytes, or endless headers."""
    heads: tuple[tuple[bytes, bytes], ...] = (
        (reply.head()[:-2] + chance.randbytes(60), b""),
        (reply.head(b"X: \x00\xff\x1b[31m", b"ETag: " + chance.randbytes(20).hex().encode()), b""),
        (reply.head(b"\xe2\x80\xae: x", b": empty", b" folded: x", b"no colon"), b""),
        (reply.head()[:-2], b"X-A: b\r\n" * 512),
        (reply.head()[:-2] + b"X-A: ", b"b" * 4096),
        (b"HTTP/1.1 ", b"2" * 4096),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    )
    once, forever = chance.choice(heads)
    yield once
    yield from repeat(forever) if forever else (reply.body,)


def _other_status(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    statuses = (
        *("HTTP/1.1 999 \x1b]0;x\x07", "HTTP/9.9 200 OK", "HTTP/1.1 -5 x", "ICY 200 OK", ""),
        *("HTTP/1.1 204 No Content", "HTTP/1.1 206 Partial", "HTTP/1.1 416 x", "HTTP/1.1 401 x"),
        *("HTTP/1.1 500 x", "HTTP/1.1 429 x", "HTTP/1.1 101 x", "HTTP/1.1 200", "SSH-2.0-x"),
    )
    rest = reply.whole().partition(b"\r\n")[2]
    yield chance.choice(statuses).encode() + b"\r\n" + rest


def _other_body(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    """A body with changed bytes, cut short, or too long."""
    at = chance.randrange(len(reply.body) + 1)
    bodies = spoilt_bytes(reply.body, chance), reply.body[:at], reply.body * 2, b"", b"\0" * 4096
    yield Reply(chance.choice(bodies), reply.status, reply.headers).whole()


def _other_names(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    """A listing that leads elsewhere, has very many names, or is slow to parse."""
    listings = (
        "<a href='../../../etc/passwd.jsonl'>x</a><a href='/x.jsonl'>x</a><a href='..'>x</a>",
        "".join(f"<a href='{k:064x}.jsonl'>x</a>" for k in range(_MANY)),
        "<a href='file:///etc/x.jsonl'>x</a><a href='http://127.0.0.1:1/records/y.jsonl'>x</a>",
        "<a href='\x1b[31m.jsonl'>x</a><a href='%00.jsonl'>x</a><a href='a.jsonl'>x</a>",
        "<a" + " " * _MANY,
        "<a " * _MANY,
        "a" * (1 << 24) + ".jsonl",
        "<a href='" + "a." * _MANY,
    )
    body = chance.choice(listings).encode()
    yield Reply(body, reply.status, {"Content-Type": "text/html"}).whole()


def _more(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    """An unrequested second reply on the same connection."""
    other = Reply(spoilt_bytes(reply.body, chance), reply.status, reply.headers)
    yield reply.whole() + chance.choice((other.whole(), chance.randbytes(100)))


def _cut(chance: random.Random, reply: Reply) -> Iterator[bytes]:
    whole = reply.whole()
    yield whole[: chance.randrange(len(whole))]


LIES: dict[str, Lie] = {
    lie.__name__[1:].replace("_", " "): lie
    for lie in (
        *(_endless, _endless_chunks, _slow, _other_length, _broken_chunks, _packed, _redirect),
        *(_other_type, _odd_headers, _other_status, _other_body, _other_names, _more, _cut),
    )
}
