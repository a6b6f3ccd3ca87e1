"""Run batches of sizes that a library has no code for, in parts of sizes that it has.

    7 rows, code for 1, 2 and 4:  4, 2 and 1;  or, where a part costs more than a row, 4 and 4,
                                               with one more row that nobody reads

Each part reads and writes its rows in place. Rows are independent of each other, which was proved
when the library was built (`model/relax/rows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .tensors import room_for

if TYPE_CHECKING:
    from .interface import Interface, TensorInfo

ROW = 1000  # the cost of a row, in the unit of a manifest's `part`
Arrays = Mapping[str, np.ndarray]
Part = tuple[int, Arrays, Arrays]  # the variant that runs it, what it reads, what it writes


def tried_size(sizes: Sequence[int], most: int) -> int | None:
    """The batch size by which parts are tried: the largest one that is no size with own code.

    It is at most the sum of all sizes; None if there is none.
    """
    known = range(sizes[0], min(most, sum(sizes)) + 1)
    return next((rows for rows in reversed(known) if rows not in sizes), None)


class Batches:
    """The batches that a library takes, besides the sizes that it has code for.

    known: the interfaces that it has code for. said: the manifest's `batch`: `least` and `most`
    rows, the `inputs` that have these along their first axis, and the cost of a `part` besides that
    of its rows.
    """

    def __init__(self, said: Mapping[str, Any], known: Sequence[Interface]) -> None:
        self.least, self.most = int(said["least"]), int(said["most"])
        self._inputs, self._known = list(said["inputs"]), known
        self._sizes = [one.input_shapes[self._inputs[0]][0] for one in known]
        self._costs = [said["part"] + ROW * size for size in self._sizes]
        self._made: dict[int, Interface] = {}  # by rows
        self._best, self._next = [0], [0]  # by rows: their least cost, and their first part

    @property
    def interfaces(self) -> list[Interface]:
        """The interfaces that the library has code for."""
        return list(self._known)

    @property
    def tried(self) -> list[Interface]:
        """The interface of a batch in parts that is tried when a library is verified, if any."""
        rows = tried_size(self._sizes, self.most)
        return [self.interface(rows)] if rows else []

    @property
    def takes(self) -> str:
        """The inputs as text, such as "x: float32[1..8, 3, 8, 8]"."""
        return ", ".join(map(self._text, self._known[0].inputs))

    def interface(self, rows: int) -> Interface:
        """The interface of the library with a batch of so many rows."""
        if rows in self._made:
            return self._made[rows]
        one = self._known[0]
        inputs = (self._of(info, rows) if self._has_rows(info) else info for info in one.inputs)
        outputs = (self._of(info, rows) for info in one.outputs)
        made = self._made[rows] = replace(one, inputs=tuple(inputs), outputs=tuple(outputs))
        return made

    def of(self, inputs: Arrays) -> Interface | None:
        """The interface of a batch that is run in parts; None for all other inputs."""
        given = inputs.get(self._inputs[0])
        if given is None or not given.ndim or not self.least <= len(given) <= self.most:
            return None
        return None if len(given) in self._sizes else self.interface(len(given))

    def parts(self, inputs: Arrays, outputs: Arrays) -> Iterator[Part]:
        """The parts of a batch; each must be run before the next one is requested.

        If the last part has rows that nobody reads, it writes to separate memory, from which its
        other rows are copied.
        """
        rows, begin = len(inputs[self._inputs[0]]), 0
        for variant in self._variants(rows):
            size = self._sizes[variant]
            given = {name: self._taken(name, one, begin, size) for name, one in inputs.items()}
            made = {name: _rows(one, rows, begin, size) for name, one in outputs.items()}
            if begin + size > rows:
                whole = room_for(self._known[variant].outputs)
                yield variant, given, whole
                for name, one in made.items():
                    one[...] = whole[name][: len(one)]
            else:
                yield variant, given, made
            begin += size

    def _variants(self, rows: int) -> Iterator[int]:
        """The variants of the parts that cost least together."""
        for n in range(len(self._best), rows + 1):
            costs = (
                (cost + self._best[max(0, n - size)], -at)
                for at, (size, cost) in enumerate(zip(self._sizes, self._costs, strict=True))
            )
            cost, at = min(costs)
            self._best.append(cost)
            self._next.append(-at)
        while rows > 0:
            yield self._next[rows]
            rows -= self._sizes[self._next[rows]]

    def _taken(self, name: str, given: np.ndarray, begin: int, size: int) -> np.ndarray:
        """The rows of a part; missing ones are copies of the last row, and so are valid."""
        if name not in self._inputs:
            return given
        taken = given[begin : begin + size]
        lacking = size - len(taken)
        return np.concatenate([taken, np.repeat(given[-1:], lacking, 0)]) if lacking else taken

    def _has_rows(self, info: TensorInfo) -> bool:
        return info.name in self._inputs

    def _of(self, info: TensorInfo, rows: int) -> TensorInfo:
        first, *rest = info.shape
        return replace(info, shape=(first // self._sizes[0] * rows, *rest))

    def _text(self, info: TensorInfo) -> str:
        first, *rest = map(str, info.shape)
        sizes = [f"{self.least}..{self.most}" if self._has_rows(info) else first, *rest]
        return f"{info.name}: {info.dtype}[{', '.join(sizes)}]"


def _rows(whole: np.ndarray, rows: int, begin: int, size: int) -> np.ndarray:
    """The rows of a part in an array that may have several lines for each row."""
    lines = len(whole) // rows
    return whole[begin * lines : (begin + size) * lines]
