"""The door through which a board's words come in: they are held to a type, and made harmless.

A board may say anything, and so may whatever has stolen its key. JSON is bounded in length and
depth before it is decoded; what it holds is bounded by the type that it is held to, and numbers are
finite and in range. Text can do nothing to a terminal from here on.
"""

from typing import Any, TypeVar

import msgspec

from ..system.printable import printable

DEEPEST = 16  # arrays and objects within each other
_BRIEF = 300  # characters of somebody else's words in a message
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

Kind = TypeVar("Kind")


class Refused(ValueError):  # noqa: N818 - not a fault of ours
    """What a board said is not what it may say."""


def admit(text: bytes, kind: type[Kind], most: int) -> Kind:
    """What JSON text says, as this type; Refused where it is not of it, or longer than `most`."""
    if len(text) > most:
        raise Refused(f"{len(text)} bytes of JSON")
    if _deep(text):
        raise Refused("JSON within JSON without end, or damaged")
    try:
        return fit(_harmless(msgspec.json.decode(text)), kind)
    except Refused:
        raise
    except ValueError as error:  # msgspec's, and UnicodeDecodeError
        raise Refused(brief(str(error))) from error


def fit(value: Any, kind: type[Kind]) -> Kind:
    """Decoded JSON as this type; Refused where it is not of it."""
    try:
        return msgspec.convert(value, kind)
    except ValueError as error:
        raise Refused(brief(str(error))) from error


def brief(text: str, most: int = _BRIEF) -> str:
    """Somebody else's words as they may stand in a message: on one line, and not without end."""
    text = printable(" | ".join(line for line in text[: 4 * most].splitlines() if line.strip()))
    return text if len(text) <= most else text[: most - 3] + "..."


def _deep(text: bytes) -> bool:
    """Whether brackets are nested too deeply, or are no pairs; those in strings do not count."""
    outside = b"".join(text.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2])
    brackets = outside.translate(None, _NO_BRACKETS)
    for _ in range(DEEPEST):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return bool(brackets)


def _harmless(value: Any) -> Any:
    """The same value with all its text printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_harmless(item) for item in value]
    if isinstance(value, dict):
        return {printable(key): _harmless(item) for key, item in value.items()}
    return value
