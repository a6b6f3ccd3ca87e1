"""Text that somebody else wrote: parsed strictly, and quoted so that it can be printed."""

import json
from typing import Any

from ..system.digest import canonical_json


class Refused(ValueError):  # noqa: N818 - what was done to the text, not what went wrong
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
    refuse(set(value) != set(fields), f"fields {quoted(sorted(value))} are not {', '.join(fields)}")
    return dict(value)
