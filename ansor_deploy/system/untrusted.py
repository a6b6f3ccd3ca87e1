"""What somebody else wrote: held to a form or a type, and made harmless, before it is believed.

What this tool writes itself, such as a record, has one text and is parsed strictly: `strict_json`.
A board may say anything, and so may whatever has stolen its key: its JSON comes in by `admit`. That
is bounded in length and depth before it is decoded; what it holds is bounded by the type that it is
held to, and numbers are finite and in range. Text can do nothing to a terminal from here on.
"""

import json
from typing import Any, TypeVar

import msgspec

from .digest import canonical_json
from .printable import printable

DEEPEST = 16  # arrays and objects within each other
_BRIEF = 300  # characters of somebody else's words in a message
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

Kind = TypeVar("Kind")


class Refused(ValueError):  # noqa: N818 - what was done to it, not what went wrong
    """Foreign data that is not let in; the message says why and is safe to print."""


def refuse(condition: object, reason: str) -> None:
    """Raise Refused with the reason where the condition holds."""
    if condition:
        raise Refused(reason)


def quoted(value: Any) -> str:
    """A short ASCII spelling of any value: no control character, no look-alike letters."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def strict_json(text: str, most: int) -> Any:
    """The value of a canonical JSON text of at most so many characters.

    There is one canonical text of a value, so duplicate keys, NaN, infinities, odd escapes and
    numbers that Python would round are refused with whatever else differs from it.
    """
    refuse(len(text) > most, f"it has {len(text)} characters, and may have {most}")
    try:
        value = json.loads(text)
        canonical = canonical_json(value)
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except ValueError as error:  # of a number with thousands of digits too
        raise Refused(f"it is not JSON: {quoted(str(error))}") from None
    refuse(canonical != text, "it is not canonical JSON: keys sorted and single, no spaces")
    return value


def exactly(value: Any, *fields: str) -> dict[str, Any]:
    """The value, which must be an object with just these fields."""
    refuse(not isinstance(value, dict), f"{quoted(value)} stands where an object belongs")
    if set(value) != set(fields):
        raise Refused(f"fields {quoted(sorted(value))} are not {', '.join(fields)}")
    return dict(value)


def admit(text: bytes, kind: type[Kind], most: int) -> Kind:
    """What JSON text says, as this type; Refused where it is not of it, or longer than `most`."""
    if len(text) > most:
        raise Refused(f"{len(text)} bytes of JSON")
    if _deep(text):
        raise Refused("JSON within JSON without end, or damaged")
    try:
        value = msgspec.json.decode(text)
    except ValueError as error:  # msgspec's, and UnicodeDecodeError
        raise Refused(brief(str(error))) from error
    return fit(_harmless(value), kind)


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
