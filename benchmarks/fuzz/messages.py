"""Mutations of a protobuf message by its structure: the result parses, but means something else.

A message is a tree. An edit picks a field anywhere in it and changes it by its type: a number to an
edge case, a name to another one in the message, a list by removing, repeating or swapping an entry.
The same random numbers make the same edits.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_FLOATS = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)
_WHOLE = (
    *(-1, 0, 1, 2, 3, 7, 255, 1 << 16, 1 << 31, 1 << 40),
    *((1 << 31) - 1, (1 << 63) - 1, -(1 << 63)),
)
_REAL = (0.0, -0.0, -1.0, 1e-45, 1e38, float("inf"), float("-inf"), float("nan"))
_NAMES = (
    *("", " ", "../x", "a" * 10_000, "\x1b[31mred", "\u202egnp.exe", "a\nb"),
    *("[bold]", "$(id)", "%s{0}"),
)
_BYTES = 1 << 16  # bytes at the beginning of a field, of which some are changed

Place = tuple[Message, FieldDescriptor]


def mutate(message: Message, edits: int, chance: random.Random) -> list[str]:
    """Change the message in so many places; returns a description of each edit."""
    return [done for _ in range(edits) if (done := _edit(message, chance))]


def _edit(message: Message, chance: random.Random) -> str:
    places = list(_places(message))
    if not places:
        return ""
    owner, field = chance.choice(places)
    change = _repeated if _is_repeated(field) else _single
    try:
        what = change(message, owner, field, chance)
    except (ValueError, TypeError) as error:  # out of the type's range
        what = f"not {error}"
    return f"{owner.DESCRIPTOR.name}.{field.name}: {what}"


def _places(message: Message) -> Iterator[Place]:
    """Every field that is set, in the message and below."""
    for field, value in message.ListFields():
        yield message, field
        if field.message_type is not None:
            for part in value if _is_repeated(field) else [value]:
                yield from _places(part)


def _is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


def _repeated(root: Message, owner: Message, field: FieldDescriptor, chance: random.Random) -> str:
    entries = getattr(owner, field.name)
    at = chance.randrange(len(entries))
    if field.message_type is None and chance.random() < 0.5:
        entries[at] = value = _other(root, field, entries[at], chance)
        return f"entry {at} is {value!r:.60}"
    changed, other = copy.deepcopy(list(entries)), chance.randrange(len(entries))
    how = chance.choice(("lost", "doubled", "swapped"))
    if how == "lost":
        del changed[at]
    elif how == "doubled":
        changed.append(changed[at])
    else:
        changed[at], changed[other] = changed[other], changed[at]
    del entries[:]
    entries.extend(changed)
    return f"entry {at} is {how}{f' with {other}' if how == 'swapped' else ''}"


def _single(root: Message, owner: Message, field: FieldDescriptor, chance: random.Random) -> str:
    if field.message_type is not None or chance.random() < 0.2:
        owner.ClearField(field.name)
        return "is lost"
    value = _other(root, field, getattr(owner, field.name), chance)
    setattr(owner, field.name, value)
    return f"is {value!r:.60}"


def _other(root: Message, field: FieldDescriptor, value: Any, chance: random.Random) -> Any:
    if field.cpp_type in _FLOATS:
        return chance.choice(_REAL)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _spoilt(value, chance)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return chance.choice((*_NAMES, *_names(root, field.name)))
    if field.enum_type is not None:
        return chance.choice([one.number for one in field.enum_type.values])
    return chance.choice((*_WHOLE, value + 1, value - 1, value * 2))


def _names(root: Message, name: str) -> list[str]:
    """The message's texts in fields of this name, and in those that refer to the same names."""
    linked = {"input", "output", "name"}
    found: set[str] = set()
    for owner, field in _places(root):
        same = field.name == name or {field.name, name} <= linked
        if same and field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            value = getattr(owner, field.name)
            found |= set(value if _is_repeated(field) else [value])
    return sorted(found)


def _spoilt(value: bytes, chance: random.Random) -> bytes:
    """Other bytes: shorter, longer, or with a few changed."""
    how = chance.randrange(4)
    if how == 0:
        return value[: chance.randrange(len(value) + 1)]
    if how == 1:
        return value + chance.randbytes(chance.randrange(1, 64))
    return spoilt_bytes(value, chance)


def spoilt_bytes(value: bytes, chance: random.Random) -> bytes:
    """As many bytes, one to eight of them changed, near the beginning."""
    found = bytearray(value)
    for _ in range(chance.randrange(1, 9) if found else 0):
        at = chance.randrange(min(len(found), _BYTES))
        found[at] = chance.choice((0, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    return bytes(found)
