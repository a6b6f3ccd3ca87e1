"""The steps of a library with a context, which write to its caches in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .context import Cache
from .tensors import unwritten

if TYPE_CHECKING:
    from .interface import Interface, TensorInfo

Arrays = Mapping[str, np.ndarray]
Run = Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None]


class Steps:
    """The memory of a context. length: how many rows count; those behind them are zeros.

    one: the interface of the library's function, with a context. run: that function.
    """

    def __init__(self, one: Interface, run: Run) -> None:
        self.length = 0
        context = one.context
        assert context is not None  # noqa: S101 - for type checkers
        self._one, self._context, self._run = one, context, run
        self._rooms: dict[str, np.ndarray] = {}
        self._counted = {each.name: each for each in context.counted}
        caches = {cache.input for cache in context.caches}
        self._given = [info for info in one.inputs if info.name not in {*caches, context.length}]
        for info in one.inputs:
            if info.name in caches or info.name in self._counted:
                self._rooms[info.name] = unwritten(info.shape, info.dtype)
                self._rooms[info.name][...] = 0

    @property
    def takes(self) -> Interface:
        """The inputs of the next step: all but the caches, at their current lengths."""
        return replace(self._one, inputs=tuple(map(self._now, self._given)))

    def _now(self, info: TensorInfo) -> TensorInfo:
        if (each := self._counted.get(info.name)) is None:
            return info
        before, behind = info.shape[: each.axis], info.shape[each.axis + 1 :]
        return replace(info, shape=(*before, self.length + each.more, *behind))

    def step(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """Run once, and count the new rows. inputs: all but the caches, in the right shapes."""
        outputs = {info.name: unwritten(info.shape, info.dtype) for info in self._one.outputs}
        self._run(self.arguments(inputs), list(outputs.values()))
        self.length += self._context.tokens
        return outputs

    def arguments(self, inputs: Arrays) -> list[np.ndarray]:
        """The arguments of the function for a step."""
        for each in self._context.counted:
            self._within(each.name, each.axis, 0, self.length + each.more)[...] = inputs[each.name]
        here = {**inputs, **self._rooms, self._context.length: np.array(self.length, np.int64)}
        return [here[info.name] for info in self._one.inputs]

    def grown(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """Run like the model itself: caches are among the inputs, and longer ones are outputs."""
        self.load(inputs)
        made = self.step(inputs)
        names = [info.name for info in self._context.grown(self._one, 0).outputs]
        made |= {cache.output: self.rows(cache) for cache in self._context.caches}
        return {name: made[name] for name in names}

    def load(self, caches: Arrays) -> None:
        """Replace all rows by those of caches, which are given by the names of inputs."""
        self.truncate(0)
        for cache in self._context.caches:
            given = caches[cache.input]
            self.length = given.shape[cache.axis]
            placed = given.transpose(cache.order) if cache.order else given
            self._within(cache.input, cache.rows, 0, self.length)[...] = placed

    def rows(self, cache: Cache) -> np.ndarray:
        """A copy of the rows of a cache that count."""
        counted = self._within(cache.input, cache.rows, 0, self.length)
        return np.array(counted.transpose(cache.back) if cache.order else counted, order="C")

    def truncate(self, length: int) -> None:
        """Let at most `length` rows count."""
        for cache in self._context.caches:
            self._within(cache.input, cache.rows, length, self.length)[...] = 0
        for each in self._context.counted:
            end = self._context.rows + each.more
            self._within(each.name, each.axis, length + each.more, end)[...] = 0
        self.length = min(length, self.length)

    def _within(self, name: str, axis: int, begin: int, end: int) -> np.ndarray:
        places = [slice(None)] * axis + [slice(begin, end)]
        return self._rooms[name][tuple(places)]
