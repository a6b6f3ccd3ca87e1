"""A TOML file written by a user: its values, and the line to point at when one is wrong.

A field's type defines what is accepted: msgspec checks values against
`Annotated[..., Meta(..., description="...")]`; the description completes the sentence "the field
must be ...".
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from ..errors import UsageError
from .regular_file import read_regular

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Count = Annotated[int, Meta(ge=1, le=2**53, description="a whole number, 1 or more")]
Size = Annotated[int, Meta(ge=0, le=2**53, description="a whole number, 0 or more")]
Flag = Annotated[bool, Meta(description="true or false")]
Line = Annotated[
    str, Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+\Z", description="a line of text")
]
Lines = Annotated[list[Line], Meta(description='a list of names, such as ["a", "b"]')]
Table = Annotated[dict[str, Any], Meta(description="a table")]
_MOST_BYTES = 4 << 20  # of the largest file that is read
_HEADER = re.compile(r"\s*\[+\s*([^\]\s]+)\s*\]+")


@dataclass(frozen=True)
class TomlFile:
    """The parsed values of a file, and the text that they came from."""

    path: Path
    text: str
    data: dict[str, Any]

    def line(self, key: str, table: str = "") -> int:
        """The line of `key` in `table` ("" is the top level), counted from 1.

        For a key of an inline table, it is the table's line.
        """
        pattern = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""")
        here, header = "", 1
        for number, line in enumerate(self.text.splitlines(), start=1):
            if match := _HEADER.match(line):
                here = match[1]
                header = number if here in (key, table) else header
            elif here == table and pattern.match(line):
                return number
        return self.line(table) if table and header == 1 else header

    def error(self, message: str, key: str, table: str = "", hint: str = "") -> UsageError:
        """The error with this message about a key of the file."""
        return UsageError(message, hint, self.path, self.line(key, table))

    def check(
        self, kinds: Mapping[str, Any], table: str = "", values: Mapping[str, Any] | None = None
    ) -> None:
        """UsageError at the first key of `table` that is unknown, or whose value its type refuses.

        kinds: the types of fields, by their names. values: those of a table nested in `table`.
        """
        where = f" in [{table}]" if table else ""
        if values is None:
            values = self.data[table] if table else self.data
        for key, value in values.items():
            if key not in kinds:
                hint = f"Allowed{where}: {', '.join(kinds)}."
                raise self.error(f"unknown field {key!r}{where}", key, table, hint)
            if form := must_be(value, kinds[key]):
                hint = f"Correct the value; it is {value!r}."
                raise self.error(f"{key} must be {form}", key, table, hint)


def read_toml(path: Path) -> TomlFile:
    """Read and parse a file; UsageError, with the line, if that fails."""
    try:
        text = read_regular(path, _MOST_BYTES).decode()
        return TomlFile(path, text, tomllib.loads(text))
    except OSError as error:
        hint = "Check the path and its permissions."
        raise UsageError(f"cannot be read: {error.strerror}", hint, path) from error
    except UnicodeDecodeError as error:
        raise UsageError("is not UTF-8 text", "Save the file as UTF-8.", path) from error
    except (ValueError, RecursionError) as error:  # also from a number with thousands of digits
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        reason = re.sub(r"\s*\(at [^)]*\)|;.*", "", str(error))
        hint = 'A field is written as: name = value, and text in quotes: cpu = "cortex-a53".'
        raise UsageError(f"not valid TOML: {reason}", hint, path, line) from error


def must_be(value: Any, kind: Any) -> str:
    """What a value of this type must be, as its description says, or "" if the value fits.

    The type's `extra` may hold a check that msgspec cannot express: "fits", a predicate of the
    value.
    """
    meta = next(meta for meta in get_args(kind) if isinstance(meta, Meta))
    fits = (meta.extra or {}).get("fits", lambda _: True)
    form = meta.description or "another value"
    try:
        return "" if fits(msgspec.convert(value, kind)) else form
    except (msgspec.ValidationError, UnicodeEncodeError):  # UnicodeEncodeError: a lone surrogate
        return form
