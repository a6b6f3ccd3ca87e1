"""The part of a manifest that describes a decoder's caches."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ..system.json_types import Count, Name


class Cache(Struct, frozen=True):
    """An input that a library keeps, and the model's output that replaces it after a step.

    axis: the axis of rows in the model. at: the position of the output among the model's. order:
    the model's axes in the order in which they lie in memory; empty where that is the model's.
    """

    input: Name
    output: Name
    axis: Annotated[int, Meta(ge=0)]
    at: Annotated[int, Meta(ge=0)]
    order: tuple[Annotated[int, Meta(ge=0)], ...] = ()


class Counted(Struct, frozen=True):
    """An input that grows with each step: its extent on an axis is the number of rows + `more`."""

    name: Name
    axis: Annotated[int, Meta(ge=0)]
    more: Annotated[int, Meta(ge=0)]


class Context(Struct, frozen=True):
    """What a library keeps from one step to the next: caches with room for so many rows.

    tokens: how many rows a step adds. length: the input with the number of rows before the step.
    """

    rows: Count
    tokens: Count
    length: Name
    caches: tuple[Cache, ...]
    counted: tuple[Counted, ...]
