"""What a manifest says of a library that keeps a decoder's caches."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ..system.json_types import Count, Name


class Cache(Struct, frozen=True):
    """An input that a library keeps, and the output of the model that it is after a step.

    axis: along which rows lie in the model. at: the place of the output among the model's. order:
    of the model's axes, as they lie in memory; empty where it is the same.
    """

    input: Name
    output: Name
    axis: Annotated[int, Meta(ge=0)]
    at: Annotated[int, Meta(ge=0)]
    order: tuple[Annotated[int, Meta(ge=0)], ...] = ()


class Counted(Struct, frozen=True):
    """An input that is longer with each step: along an axis, by `more` than rows count."""

    name: Name
    axis: Annotated[int, Meta(ge=0)]
    more: Annotated[int, Meta(ge=0)]


class Context(Struct, frozen=True):
    """What a library keeps from one step to the next: caches with room for so many rows.

    tokens: rows that a step adds. length: the input that says how many rows count before it.
    """

    rows: Count
    tokens: Count
    length: Name
    caches: tuple[Cache, ...]
    counted: tuple[Counted, ...]
