"""Fields that a user or another program fills: their types say what is accepted, and in words.

A type is `Annotated[..., Meta(..., description="a number above 0")]` of msgspec, which checks
values against it; the description completes the sentence "the field must be ...".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1, le=2**53, description="a whole number, 1 or more")]
Size = Annotated[int, Meta(ge=0, le=2**53, description="a whole number, 0 or more")]
Flag = Annotated[bool, Meta(description="true or false")]
Line = Annotated[
    str, Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+\Z", description="a line of text")
]


def must_be(value: Any, kind: Any) -> str:
    """What a value of this type must be, as its description says; "" where the value is such."""
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError):  # of a lone surrogate
        return str(next(meta.description for meta in get_args(kind) if isinstance(meta, Meta)))
    return ""


def wrong_fields(values: Mapping[str, Any], kinds: Mapping[str, Any]) -> dict[str, str]:
    """What each of the values that its field's type refuses must be; KeyError for other fields."""
    needed = {key: must_be(value, kinds[key]) for key, value in values.items()}
    return {key: form for key, form in needed.items() if form}
