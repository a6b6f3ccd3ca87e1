"""Weights of four bits: eight a word, taken apart where one row is multiplied by them.

    step = float32((words[k / 8, c] >> 4 (k % 8)) & 15) - 8
    w[k, c] = step * scale[k / 32, c]

A row takes as long as its weights take to come from memory. Several would take them apart again and
again, where from bytes a panel of float32 is made for all of them (`widened_panels.py`).

A step is not moved to the last bits: put among those of a float whose bits stand there for 1, 2, 4
and 8, it adds itself, so that two instructions make it (of 23 bits that a float has, the word's
first five steps are in reach, and the others after a shift by twelve that they share).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._tvm import tirx

# What four bits hold, and how many of them a word.
_LEAST, _MOST, _EACH = -8, 7, 8
# The last step of a word that a float's own bits reach, and by how much the others are moved.
_REACHED, _MOVED = 4, 12
# The exponent of a float whose last bit is a one, and where exponents stand.
_ONES, _EXPONENT = 127 + 23, 23


@dataclass(frozen=True, eq=False)
class FourBits:
    """A matrix of eight steps a word along an axis, and the scale of each block of so many."""

    words: np.ndarray
    scales: np.ndarray
    axis: int
    size: int

    @classmethod
    def of(cls, steps: np.ndarray, scales: np.ndarray, axis: int, size: int) -> FourBits | None:
        """Steps, eight a word; None where four bits do not hold them, or words are not filled."""
        if steps.shape[axis] % _EACH or steps.min() < _LEAST or steps.max() > _MOST:
            return None
        lines = (np.moveaxis(steps, axis, 0) - _LEAST).astype(np.uint32)
        parts = [lines[at::_EACH] << np.uint32(4 * at) for at in range(_EACH)]
        words = np.bitwise_or.reduce(parts).view(np.int32)
        return cls(np.ascontiguousarray(np.moveaxis(words, 0, axis)), scales, axis, size)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The constants that are stored."""
        return self.words, self.scales

    @property
    def key(self) -> Hashable:
        """Equal where elements are loaded alike."""
        return "four bits", self.axis, self.size

    def loaded(self, buffers: Sequence[Any], indices: Sequence[Any]) -> Any:
        """An element as float32."""
        words, scales = buffers
        word, block = (
            [i // several if at == self.axis else i for at, i in enumerate(indices)]
            for several in (_EACH, self.size)
        )
        step = _step(tirx.BufferLoad(words, word), indices[self.axis] % _EACH)
        return step * tirx.BufferLoad(scales, block)


def _step(word: Any, at: Any) -> Any:
    """A step of a word as float32."""
    at = tirx.Cast("int32", at)
    moved = _MOVED * tirx.Cast("int32", at > _REACHED)
    place = 4 * at - moved
    bits = tirx.shift_right(word, moved) & tirx.shift_left(tirx.const(15, "int32"), place)
    ones = tirx.shift_left(_ONES - place, tirx.const(_EXPONENT, "int32"))
    zero = ones | tirx.shift_left(tirx.const(-_LEAST, "int32"), place)
    return tirx.reinterpret("float32", bits | ones) - tirx.reinterpret("float32", zero)
