"""Weights of four bits: eight a word, taken apart where few rows are multiplied by them.

    step = float32((words[k / 8, c] >> 4 nibble(k % 8)) & 15) - 8
    w[k, c] = step * scale[k / 32, c]

Few rows take as long as their weights take to come from memory, and one tile of a micro-kernel has
all of them. Many tiles would take words apart again and again, where from bytes a panel of float32
is made for all of them (`widened_panels.py`).

A step is not moved to the last bits: put among those of a float whose bits stand there for 1, 2, 4
and 8, it adds itself, so that two instructions make it (of 23 bits that a float has, the word's
first five steps are in reach, and the others after a shift by twelve that they share).

Every second step lies in the low halves of a word's bytes, the others in the high ones, so that of
four steps in a row each is a byte once a mask is laid over all (`rounded_products.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._lazy_tvm import tirx

# Rows that a tile has at once.
FEW = 8
# Steps of a word, and what four bits hold.
EACH = 8
_LEAST, _MOST = -8, 7
# The last step of a word that a float's own bits reach, and by how much the others are moved.
_REACHED, _MOVED = 4, 12
# The exponent of a float whose last bit is a one, and where exponents stand.
_ONES, _EXPONENT = 127 + 23, 23


def nibble(at: Any) -> Any:
    """The place in its word of a step: 0, 2, 4, 6 of the first four, 1, 3, 5, 7 of the others."""
    return at % 4 * 2 + at // 4


def words_of(steps: np.ndarray, axis: int = 0) -> np.ndarray | None:
    """Steps, eight a word along an axis; None where four bits do not hold them, or fill no word.

    steps: signed bytes, or unsigned ones, which are as many above.
    """
    lines = np.moveaxis(steps, axis, 0)
    if steps.dtype == np.int8:
        lines = (lines - np.int8(_LEAST)).view(np.uint8)
    if len(lines) % EACH or lines.max() > _MOST - _LEAST:
        return None
    words = np.zeros((len(lines) // EACH, *lines.shape[1:]), np.uint32)
    for at in range(EACH):
        words |= lines[at::EACH].astype(np.uint32) << np.uint32(4 * nibble(at))
    return np.ascontiguousarray(np.moveaxis(words.view(np.int32), 0, axis))


def steps_of(words: np.ndarray) -> np.ndarray:
    """The steps of words along the first axis, a byte each."""
    steps = np.empty((len(words) * EACH, *words.shape[1:]), np.int8)
    for at in range(EACH):
        steps[at::EACH] = (words >> np.int32(4 * nibble(at)) & np.int32(15)) + _LEAST
    return steps


def step_of(word: Any, at: Any) -> Any:
    """A step of a word as float32."""
    at = nibble(tirx.Cast("int32", at))
    moved = _MOVED * tirx.Cast("int32", at > _REACHED)
    place = 4 * at - moved
    bits = tirx.shift_right(word, moved) & tirx.shift_left(tirx.const(15, "int32"), place)
    ones = tirx.shift_left(_ONES - place, tirx.const(_EXPONENT, "int32"))
    zero = ones | tirx.shift_left(tirx.const(-_LEAST, "int32"), place)
    return tirx.reinterpret("float32", bits | ones) - tirx.reinterpret("float32", zero)
