"""Checks of values that come from outside: numbers, texts and lists within bounds."""

import re
from collections.abc import Callable
from typing import Any

Check = Callable[[Any], bool]

INT32 = 2**31 - 1


def is_int(value: Any, least: int, most: int) -> bool:
    """Whether the value is an integer within bounds; True and False are not integers here."""
    return type(value) is int and least <= value <= most


def integer(least: int, most: int) -> Check:
    """A check that a value is an integer within bounds."""
    return lambda value: is_int(value, least, most)


def number(least: float, most: float, *, types: tuple[type, ...] = (int, float)) -> Check:
    """A check that a value is a number within bounds; NaN never is."""
    return lambda value: type(value) in types and least <= value <= most


def text(pattern: str) -> Check:
    """A check that a value is a text of this pattern.

    The pattern is compiled at the first use, as most commands check no such value.
    """
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def one_of(*values: object) -> Check:
    """A check that a value equals one of these, and has its type."""
    return lambda value: any(type(value) is type(v) and value == v for v in values)


def list_of(item: Check, least: int, most: int) -> Check:
    """A check that a value is a list of `least` to `most` items that pass a check."""
    return lambda value: (
        isinstance(value, list) and least <= len(value) <= most and all(map(item, value))
    )


flag = one_of(False, True, 0, 1)
