"""Checks of untrusted data: it is parsed within bounds, checked against a type, and made harmless.

A format of this tool, such as that of records, has one text for a value and is parsed strictly, by
`strict_json`. A board may send anything, and so may whoever has stolen its key: its JSON goes
through `admit`, which bounds length and depth before it decodes, then checks the type, which bounds
the content and demands finite numbers in range. After that, text cannot control a terminal.
"""

import json
from typing import Any, TypeVar

import msgspec

from .digest import canonical_json
from .printable import printable

DEEPEST = 16  # nested arrays and objects
_BRIEF = 300  # characters of untrusted text in a message
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

Kind = TypeVar("Kind")


class Refused(ValueError):  # noqa: N818 - named after what is done to the data
    """Untrusted data that is not accepted; the message says why and is safe to print."""


def refuse(condition: object, reason: str) -> None:
    """Raise Refused, with the reason, where the condition holds."""
    if condition:
        raise Refused(reason)


def quoted(value: Any) -> str:
    """A short ASCII spelling of any value, without control characters and look-alike letters."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def strict_json(text: str, most: int) -> Any:
    """The value of a canonical JSON text of at most so many characters.

    A value has only one canonical text. So duplicate keys, NaN, infinities, odd escapes, and
    numbers that Python would round are refused, like every other difference from that text.
    """
    refuse(len(text) > most, f"it has {len(text)} characters, and may have {most}")
    try:
        value = json.loads(text)
        canonical = canonical_json(value)
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except ValueError as error:  # also from a number with thousands of digits
        raise Refused(f"it is not JSON: {quoted(str(error))}") from None
    refuse(canonical != text, "it is not canonical JSON: keys sorted and single, no spaces")
    return value


def exactly(value: Any, *fields: str) -> dict[str, Any]:
    """The value, which must be an object with exactly these fields."""
    refuse(not isinstance(value, dict), f"{quoted(value)} stands where an object belongs")
    if set(value) != set(fields):
        raise Refused(f"fields {quoted(sorted(value))} are not {', '.join(fields)}")
    return dict(value)


def admit(text: bytes, kind: type[Kind], most: int) -> Kind:
    """The value of JSON text as this type; Refused where it does not fit, or is too long."""
    if len(text) > most:
        raise Refused(f"{len(text)} bytes of JSON")
    if _deep(text):
        raise Refused("JSON within JSON without end, or damaged")
    try:
        value = msgspec.json.decode(text)
    except ValueError as error:  # msgspec's errors, and UnicodeDecodeError
        raise Refused(brief(str(error))) from error
    return fit(_harmless(value), kind)


def fit(value: Any, kind: type[Kind]) -> Kind:
    """Decoded JSON as this type; Refused where it does not fit."""
    try:
        return msgspec.convert(value, kind)
    except ValueError as error:
        raise Refused(brief(str(error))) from error


def brief(text: str, most: int = _BRIEF) -> str:
    """Untrusted text for a message: printable, on one line, and of limited length."""
    text = printable(" | ".join(line for line in text[: 4 * most].splitlines() if line.strip()))
    return text if len(text) <= most else text[: most - 3] + "..."


def _deep(text: bytes) -> bool:
    """Whether brackets are nested too deeply, or do not match; those in strings do not count."""
    outside = b"".join(text.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2])
    brackets = outside.translate(None, _NO_BRACKETS)
    for _ in range(DEEPEST):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return bool(brackets)


def _harmless(value: Any) -> Any:
    """The value with all its text made printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_harmless(item) for item in value]
    if isinstance(value, dict):
        return {printable(key): _harmless(item) for key, item in value.items()}
    return value
