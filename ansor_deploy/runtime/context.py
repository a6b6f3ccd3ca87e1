"""The context of a library: the caches that it keeps from one step to the next.

A decoder's model takes caches with a row for each earlier token, and returns them with another row
for each new token. A library with a context has room for all rows from the beginning, writes new
ones behind those that count, and copies none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from .interface import Interface, TensorInfo


@dataclass(frozen=True)
class Cache:
    """An input that a library keeps, and the model's output that replaces it after a step.

    axis: the axis of rows in the model. at: the position of the output among the model's. order:
    the model's axes in the order in which they lie in memory; empty where that is the model's.
    """

    input: str
    output: str
    axis: int
    at: int
    order: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """The axis of rows in memory."""
        return self.order.index(self.axis) if self.order else self.axis

    @property
    def back(self) -> tuple[int, ...]:
        """The positions of the model's axes in memory: the inverse of `order`."""
        return tuple(self.order.index(axis) for axis in range(len(self.order)))


@dataclass(frozen=True)
class Counted:
    """An input that grows with each step: its extent on an axis is the number of rows + `more`."""

    name: str
    axis: int
    more: int


@dataclass(frozen=True)
class Context:
    """The caches of a library, each with room for so many rows, of which the first ones count.

    tokens: how many rows a step adds. length: the input of the library's function with the number
    of rows that count before the step.
    """

    rows: int
    tokens: int
    length: str
    caches: tuple[Cache, ...]
    counted: tuple[Counted, ...]

    @property
    def samples(self) -> tuple[int, ...]:
        """Lengths at which a library is tried and timed: half full, almost empty, almost full."""
        last = self.rows - self.tokens
        return tuple(dict.fromkeys((max(1, min(self.rows // 2, last)), 1, last)))

    def grown(self, one: Interface, length: int) -> Interface:
        """The model's interface where so many rows count. one: the interface of the function."""
        sizes = {(cache.input, cache.rows): length for cache in self.caches}
        sizes |= {(each.name, each.axis): length + each.more for each in self.counted}
        takes = {info.name: _sized(info, sizes) for info in one.inputs}
        gives = list(one.outputs)
        for cache in sorted(self.caches, key=lambda cache: cache.at):
            info = takes[cache.input]
            if cache.order:
                shape = tuple(info.shape[axis] for axis in cache.back)
                info = takes[cache.input] = replace(info, shape=shape)
            after = _sized(info, {(info.name, cache.axis): length + self.tokens})
            gives.insert(cache.at, replace(after, name=cache.output))
        del takes[self.length]
        return replace(one, inputs=tuple(takes.values()), outputs=tuple(gives), context=None)

    def length_of(self, inputs: Mapping[str, np.ndarray]) -> int:
        """How many rows the caches among these inputs have, limited to the room for them."""
        cache = self.caches[0]
        given = inputs.get(cache.input)
        size = given.shape[cache.axis] if given is not None and given.ndim > cache.axis else 0
        return int(min(size, self.rows - self.tokens))

    def to_json(self) -> dict[str, Any]:
        """The context as it is in a manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Context:
        """The context of a manifest."""
        caches = tuple(
            Cache(**{**one, "order": tuple(one.get("order", ()))}) for one in data["caches"]
        )
        counted = tuple(Counted(**one) for one in data["counted"])
        return cls(data["rows"], data["tokens"], data["length"], caches, counted)


def _sized(info: TensorInfo, sizes: Mapping[tuple[str, int], int]) -> TensorInfo:
    shape = (sizes.get((info.name, axis), size) for axis, size in enumerate(info.shape))
    return replace(info, shape=tuple(shape))
