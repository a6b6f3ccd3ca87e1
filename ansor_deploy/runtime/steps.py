"""The caches of a library with a context, and steps, which write to them in place."""

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
    """Memory of a context. length: how many rows count; those behind are zeros.

    one: what the library's function takes and gives, with a context. run: that function.
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
        """What a step takes now: all but caches, what grows as long as it then is."""
        return replace(self._one, inputs=tuple(map(self._now, self._given)))

    def _now(self, info: TensorInfo) -> TensorInfo:
        if (each := self._counted.get(info.name)) is None:
            return info
        before, behind = info.shape[: each.axis], info.shape[each.axis + 1 :]
        return replace(info, shape=(*before, self.length + each.more, *behind))

    def step(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """Run once, and let the new rows count. inputs: of right shapes, all but the caches."""
        outputs = {info.name: unwritten(info.shape, info.dtype) for info in self._one.outputs}
        self._run(self.arguments(inputs), list(outputs.values()))
        self.length += self._context.tokens
        return outputs

    def arguments(self, inputs: Arrays) -> list[np.ndarray]:
        """What the function takes for a step."""
        for each in self._context.counted:
            self._within(each.name, each.axis, 0, self.length + each.more)[...] = inputs[each.name]
        here = {**inputs, **self._rooms, self._context.length: np.array(self.length, np.int64)}
        return [here[info.name] for info in self._one.inputs]

    def grown(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """As the model itself: with the caches among the inputs, and longer ones as outputs."""
        self.load(inputs)
        made = self.step(inputs)
        names = [info.name for info in self._context.grown(self._one, 0).outputs]
        made |= {cache.output: self.rows(cache) for cache in self._context.caches}
        return {name: made[name] for name in names}

    def load(self, caches: Arrays) -> None:
        """Take over the rows of caches, and no others, by the names of inputs."""
        self.truncate(0)
        for cache in self._context.caches:
            given = caches[cache.input]
            self.length = given.shape[cache.axis]
            placed = given.transpose(cache.order) if cache.order else given
            self._within(cache.input, cache.rows, 0, self.length)[...] = placed

    def rows(self, cache: Cache) -> np.ndarray:
        """A copy of what counts of a cache."""
        counted = self._within(cache.input, cache.rows, 0, self.length)
        return np.array(counted.transpose(cache.back) if cache.order else counted, order="C")

    def truncate(self, length: int) -> None:
        """Let no more rows count than these."""
        for cache in self._context.caches:
            self._within(cache.input, cache.rows, length, self.length)[...] = 0
        for each in self._context.counted:
            end = self._context.rows + each.more
            self._within(each.name, each.axis, length + each.more, end)[...] = 0
        self.length = min(length, self.length)

    def _within(self, name: str, axis: int, begin: int, end: int) -> np.ndarray:
        places = [slice(None)] * axis + [slice(begin, end)]
        return self._rooms[name][tuple(places)]
