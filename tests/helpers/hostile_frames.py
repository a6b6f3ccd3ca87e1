"""Invalid messages of a board, and a host that receives them.

A session is what an agent sends: its greeting, then a part for each request of `listen`. `cases()`
names sessions that are wrong in one place; `mutants(seed)` damages a valid one at random,
endlessly, for a fuzzer.
"""

from __future__ import annotations

import contextlib
import json
import queue
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ansor_deploy.devices.board import BoardSite
from ansor_deploy.devices.frames import CHUNK, MARK, Unpacker, pack
from ansor_deploy.errors import DeviceError
from ansor_deploy.system.worker import WorkerFailure

CALLS, TURNS = "ansor_deploy.devices.library_calls", "ansor_deploy.measure.head_to_head"
RUNNER = "ansor_deploy.measure.runner"
SIZE = CHUNK + 100  # bytes of the file that is fetched
_LONGEST = 1 << 21  # of a mutant's part
EVIL = "\x1b[2J\u202e\x07\r\nevil"

HELLO = {"says": "hello", "session": "/home/pi/s", "pid": 7, "arch": "aarch64", "python": "3.11.2"}
ERRORS = {"max_abs_err": 0.0, "max_rel_err": 1e-7}
FOUND = {"seconds": [1e-3, 1.1e-3], "error": "", "message": "", "errors": ERRORS}

# The answers to the requests of `listen`, with their bytes.
ANSWERS: list[tuple[Any, bytes]] = [
    (4, b""),
    (None, b""),
    ({"positive": False}, b""),
    (FOUND, b""),
    ([FOUND, {**FOUND, "seconds": [], "error": "wrong-output", "message": "differs"}], b""),
    (1e-3, b""),
    ([1e-3, 1.1e-3, 1.2e-3], b""),
    (None, bytes(CHUNK)),
    (None, bytes(SIZE - CHUNK)),
    (None, b""),
]
THREADS, APPEND, REFERENCE, RUN, IN_TURNS, PULSE, TIMES, READ, REST, DROP = range(1, 11)
Session = list[bytes]


class Tape:
    """A `connection.Stream` whose other end sends the next part of a session at each request.

    It ends after the last part, and after `patience` seconds of silence.
    """

    def __init__(self, session: Session, patience: float) -> None:
        self._patience = patience
        self._parts = iter(session[1:])
        self._said: queue.Queue[bytes] = queue.Queue()
        self._said.put(session[0])
        self._rest = b""
        self._requests = Unpacker(json.loads, 1 << 24)

    def read(self, count: int, timeout: float) -> bytes:
        """The next bytes that are sent."""
        data = self._rest
        with contextlib.suppress(queue.Empty):
            data = data or self._said.get(timeout=self._patience)
        self._rest = data[count:]
        return data[:count]

    def write(self, data: bytes, timeout: float) -> None:
        """Receive a request, or a ping, which is not answered."""
        for message, _ in self._requests.feed(data):
            if message["do"] != "ping":
                self._said.put(next(self._parts, b""))

    def complaint(self) -> str:
        """Nothing."""
        return ""

    def close(self) -> None:
        """End the stream for its reader."""
        self._said.put(b"")


def listen(session: Session, patience: float = 1.0) -> str:
    """How a host ends that receives the session: "done", or "lost: " or "failed: " with the reason.

    Any exception is a bug of the host. patience: seconds of silence after which the board ends.
    """
    heard: list[str] = []
    site = BoardSite("board", None, 4, waiting=heard.append, patience=1.0)  # type: ignore[arg-type]
    try:
        with contextlib.closing(site):
            site.join(Tape(session, patience))
            _converse(site)
    except DeviceError as error:
        return f"lost: {error.message}"
    except WorkerFailure as failure:
        return f"failed: {failure.kind}: {failure.message}"
    assert all(holder.isprintable() for holder in heard)
    return "done"


def _converse(site: BoardSite) -> None:
    """Make every kind of request once."""
    site.put(Path(__file__).with_name("__init__.py"))
    site.call(f"{RUNNER}:reference", {}, 1)
    site.call(f"{RUNNER}:run", {}, 1)
    site.call(f"{TURNS}:head_to_head", {"candidates": [{}, {}]}, 1)
    site.call(f"{TURNS}:pulse", {}, 1)
    site.call(f"{CALLS}:times", {"runs": 3}, 1)
    assert len(site.get(site.scratch("outputs"), SIZE)) == SIZE
    site.drop(site.scratch("outputs"))


def valid() -> Session:
    """The session of a correct board."""
    greeting = MARK + pack({"says": "waiting", "holder": "process 1"}) + pack(HELLO)
    return [greeting, *(answer(at, ok, data) for at, (ok, data) in enumerate(ANSWERS, start=1))]


def answer(at: int, ok: Any, data: bytes = b"") -> bytes:
    """The frame that answers the request of that number."""
    return pack({"says": "answer", "id": at, "ok": ok}, data)


def raw(text: bytes, data: bytes = b"") -> bytes:
    """A frame with any text."""
    return struct.pack(">II", len(text), len(data)) + text + data


def failure(at: int, **words: Any) -> bytes:
    """The frame of a failed request."""
    return pack({"says": "failure", "id": at, "error": "raised", "message": "", **words})


def instead(at: int, data: bytes) -> Session:
    """A valid session with one part replaced; part 0 is the greeting."""
    session = valid()
    session[at] = MARK + data if at == 0 else data
    return session


def before(at: int, data: bytes) -> Session:
    """A valid session with more data before a part."""
    session = valid()
    session[at] = data + session[at]
    return session


# Text that is not the JSON of any frame.
NONSENSE: dict[str, bytes] = {
    "lists without end": b"[" * 100_000,
    "objects without end": b'{"a":' * 100_000,
    "lists in lists": b"[" * 50_000 + b"]" * 50_000,
    "ends of lists": b"]" * 100_000,
    "lists in a valid frame": b'{"says":"answer","id":1,"ok":' + b"[" * 100 + b"]" * 100 + b"}",
    "not a number": b'{"says":"answer","id":NaN,"ok":NaN}',
    "infinity": b'{"says":"answer","id":Infinity,"ok":-Infinity}',
    "a number of 5000 digits": b'{"says":"answer","id":' + b"9" * 5000 + b',"ok":4}',
    "a number of 4000 digits": b'{"says":"answer","id":' + b"9" * 4000 + b',"ok":4}',
    "a number beyond floats": b'{"says":"answer","id":1e999,"ok":1e999}',
    "half a surrogate pair": rb'{"says":"\ud800","id":1,"ok":"\udfff\ud800"}',
    "no UTF-8": b'{"says":"answer\xff","id":1}',
    "overlong UTF-8": b'{"says":"\xc0\xafanswer"}',
    "UTF-16": '{"says":"answer","id":1,"ok":4}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"says":"answer","id":1,"ok":4}',
    "no text": b"",
    "spaces": b" " * 100_000,
    "a list": b"[]",
    "a text": b'"answer"',
    "a number": b"1",
    "null": b"null",
    "an empty object": b"{}",
    "a torn object": b'{"says":"answer","id":1,',
    "two objects": b'{"says":"x"}{"says":"x"}',
    "quotes without end": b'"' * 99_999,
    "backslashes without end": b'{"' + b"\\" * 99_999,
    "more than any frame": b'{"says":"' + b"x" * (1 << 20) + b'"}',
    "zero bytes": bytes(1000),
    "another tag": b'{"says":"bye"}',
    "two tags": b'{"says":"bye","says":"by"}',
    "a tag that is a number": b'{"says":5}',
}

# Fields of a greeting that no agent sends.
GREETINGS: dict[str, list[Any]] = {
    "session": [None, 5, "", "relative", "/" * 5000, ["/s"], {}],
    "pid": [None, 0, -1, 1.5, 2**63, 10**30, "7", True],
    "arch": [None, 5, "x" * 5000],
    "python": [None, 3.11, "x" * 5000],
    "more": [1],
}

# Values that are not valid results of the functions.
_TIMES = (None, "1", True, float(2**70), 1e300, -1e300, [], {})
VALUES: dict[int, list[Any]] = {
    THREADS: [None, 0, -1, 1.5, 2**64, 10**30, "4", [4], {}],
    REFERENCE: [None, {}, {"positive": "yes"}, {"positive": 1}, {"positive": True, "x": 1}, []],
    RUN: [
        *(None, 5, "", [], {}, [FOUND]),
        *({**FOUND, "seconds": [time]} for time in _TIMES),
        *({**FOUND, "seconds": times} for times in ([], None, "x", {}, [1e-3] * 20_000)),
        *({**FOUND, "error": error} for error in ("wrong-output", "evil", "infrastructure", None)),
        *({**FOUND, "message": message} for message in (None, 5, "x" * 100_000)),
        *({**FOUND, "errors": errors} for errors in (None, {}, [], {**ERRORS, "x": 1})),
        *({**FOUND, "errors": {**ERRORS, "max_abs_err": e}} for e in (-1.0, "0", None, True)),
        {**FOUND, "more": 1},
    ],
    IN_TURNS: [None, [], [FOUND], [FOUND] * 3, [FOUND, None], {}, FOUND],
    PULSE: [*_TIMES],
    TIMES: [None, [], [1e-3] * 2, [1e-3] * 4, [1e-3, 1e-3, "1"], 1e-3, {"0": 1}],
}

# Bytes of a file that do not have the requested length.
READS: dict[int, list[bytes]] = {
    READ: [b"", b"x", bytes(CHUNK - 1)],
    REST: [b"", bytes(SIZE - CHUNK - 1), bytes(SIZE - CHUNK + 1), bytes(CHUNK)],
}


def cases() -> Iterator[tuple[str, Session, str]]:
    """The name of a case, its session, and how it must end: "lost", "failed" or "done"."""
    for at in (0, THREADS, RUN):
        for name, text in NONSENSE.items():
            yield f"{name}, as part {at}", instead(at, raw(text)), "lost"
    for name, values in GREETINGS.items():
        for value in values:
            said = {**HELLO, name: value}
            yield f"hello, {name} {value!r:.20}", instead(0, pack(said)), "lost"
    for at, values in VALUES.items():
        for value in values:
            yield f"answer {at} is {value!r:.60}", instead(at, answer(at, value)), "lost"
    for at, blobs in READS.items():
        for blob in blobs:
            yield f"{len(blob)} bytes, as part {at}", instead(at, answer(at, None, blob)), "lost"
    yield from _heads()
    yield from _failures()
    yield from _out_of_turn()


def _heads() -> Iterator[tuple[str, Session, str]]:
    """Invalid lengths, and bytes that are no frame at all."""
    for text, data in ((1 << 31, 0), (2**32 - 1, 2**32 - 1), (2, CHUNK + 1), (1 << 21, 0)):
        head = struct.pack(">II", text, data)
        for at in (0, RUN):
            yield f"a head of {text} and {data}, as part {at}", instead(at, head + b"{}"), "lost"
    yield "ends after the head", instead(RUN, raw(b"{}" * 50)[:20]), "lost"
    yield "says nothing", [b""], "lost"
    yield "no mark", [b"Welcome!\n", *valid()[1:]], "lost"
    yield "a login that prints for ever", [b"\x1b[2J" * 20_000], "lost"
    yield "words before the mark", [EVIL.encode() + valid()[0], *valid()[1:]], "done"
    yield "a second mark", before(RUN, MARK), "lost"
    for at in range(11):
        yield f"ends before part {at}", [*valid()[:at], b""], "lost"


def _failures() -> Iterator[tuple[str, Session, str]]:
    """Invalid failures, and text that is meant to control the terminal."""
    for words in ({"error": "evil"}, {"error": None}, {"message": None}, {"message": "x" * 70_000}):
        yield f"a failure: {words!r:.40}", instead(RUN, failure(RUN, **words)), "lost"
    for error, end in (("raised", "failed"), ("crash", "failed"), ("board", "lost")):
        yield f"evil words: {error}", instead(RUN, failure(RUN, error=error, message=EVIL)), end
    yield "evil words while waiting", instead(0, pack(_waiting(EVIL)) + pack(HELLO)), "done"
    yield "evil names", instead(0, pack({**HELLO, "arch": EVIL})), "done"
    yield "evil words of a value", instead(RUN, answer(RUN, {**FOUND, "error": EVIL})), "lost"
    yield "duplicate keys", instead(RUN, raw(b'{"says":"answer","id":4,"ok":1,"ok":2}')), "lost"


def _out_of_turn() -> Iterator[tuple[str, Session, str]]:
    """Messages that nobody asked for, some of which are ignored."""
    some: dict[str, bytes] = {
        "a second greeting": pack(HELLO),
        "waiting again": pack(_waiting("process 2")),
        "an answer that was given": answer(THREADS, 4),
        "an answer to what comes later": answer(PULSE, 5),
        "an answer to nothing": answer(99, "x" * 1000),
        "a failure of nothing": failure(99),
        "a pong": answer(0, None),
    }
    for name, frame in some.items():
        yield name, before(RUN, frame), "done"
        yield f"{name}, again and again", before(RUN, frame * 1000), "lost"
    yield "an answer, twice", before(RUN, answer(RUN, FOUND)), "done"
    yield "an answer before the greeting", instead(0, answer(1, 4) + pack(HELLO)), "done"
    yield "waiting for ever", instead(0, pack(_waiting("")) * 1000), "lost"
    for value in (None, 5, "x" * 5000, ["x"]):
        yield f"waiting for {value!r:.20}", instead(0, pack(_waiting(value))), "lost"
    for number in ("4", None, -4, 4.5, 2**70):
        frame = pack({"says": "answer", "id": number, "ok": FOUND})
        yield f"the id {number!r}", instead(RUN, frame), "lost"


def _waiting(holder: Any) -> dict[str, Any]:
    return {"says": "waiting", "holder": holder}


def mutants(seed: int) -> Iterator[Session]:
    """Endless valid sessions with one to three faults; the same seed gives the same ones."""
    chance = random.Random(seed)
    while True:
        session = valid()
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(session))
            session[at] = chance.choice(_FAULTS)(session[at], chance)[:_LONGEST]
        yield session


def _flipped(part: bytes, chance: random.Random) -> bytes:
    spoilt = bytearray(part)
    for _ in range(chance.randint(1, 8) if spoilt else 0):
        spoilt[chance.randrange(min(len(spoilt), 400))] = chance.randrange(256)
    return bytes(spoilt)


def _cut(part: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(part))
    return part[:at] + part[min(len(part), at + chance.choice((1, 4, 100, 1 << 20))) :]


def _repeated(part: bytes, chance: random.Random) -> bytes:
    return part * chance.choice((2, 3, max(2, (1 << 20) // (len(part) + 1))))


def _replaced(part: bytes, chance: random.Random) -> bytes:
    """Replace or remove one value of a frame."""
    frames = [message for message, _ in Unpacker(json.loads, 1 << 24).feed(part.removeprefix(MARK))]
    frame = chance.choice(frames)
    holder, key = chance.choice([*_places(frame)])
    if chance.random() < 0.2:
        del holder[key]
    else:
        holder[key] = chance.choice(_OTHERS)
    blob = chance.choice((b"", bytes(100), bytes(CHUNK)))
    return MARK * part.startswith(MARK) + b"".join(pack(one, blob) for one in frames[:100])


def _junk(part: bytes, chance: random.Random) -> bytes:
    return raw(chance.choice([*NONSENSE.values()])) + part


def _anything(part: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(chance.choice((1, 8, 30, 5000)))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every entry of a value, as its container and its key there."""
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in [*keys]:
        yield value, key
        yield from _places(value[key])


_OTHERS: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 2**31, 2**63, 10**30, 0.5, 1e-30, 1e300, -0.0),
    *("", EVIL, "x" * 100_000, "/", [], {}, [[]], ["x"] * 1000, [1e-3] * 5, {"says": "answer"}),
)


def _spoilt(fault: Callable[[bytes, random.Random], bytes]) -> Callable[..., bytes]:
    """Apply a fault; leave the part as it is if it no longer consists of frames."""

    def apply(part: bytes, chance: random.Random) -> bytes:
        with contextlib.suppress(ValueError, IndexError, TypeError, RecursionError):
            return fault(part, chance)
        return part

    return apply


_FAULTS = [
    _spoilt(each) for each in (_flipped, _cut, _repeated, _replaced, _replaced, _junk, _anything)
]
