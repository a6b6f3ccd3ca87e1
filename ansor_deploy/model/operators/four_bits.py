"""4-bit weights: eight a word, unpacked where few rows are multiplied by them.

    step = float32((words[k / 8, c] >> 4 nibble(k % 8)) & 15) - 8
    w[k, c] = step * scale[k / 32, c]

The time for few rows is that of reading the weights from memory, and one tile of a micro-kernel has
all the rows. Many tiles would unpack words again and again, while from bytes a panel of float32 is
made for all of them (`widened_panels.py`).

A step is not shifted to the lowest bits. It is put among the mantissa bits of a float whose
exponent gives these bits the values 1, 2, 4 and 8, so that two instructions convert it. A float has
23 such bits: the first five nibbles of a word are in reach, and the others after one shift by
twelve that they share.

The first four steps of a word are in the low halves of its bytes, the others in the high halves, so
that one mask makes bytes of four steps at once (`rounded_products.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._lazy_tvm import tirx

# The most rows that one tile computes.
FEW = 8
# Steps in a word.
EACH = 8
# The range of a step.
_LEAST = -8
_MOST = 7
# The last nibble of a word that a float's mantissa reaches.
_REACHED = 4
# By how many bits the nibbles behind it are shifted.
_MOVED = 12
# The exponent of a float whose last mantissa bit is worth one.
_ONES = 127 + 23
# The place of the exponent's bits.
_EXPONENT = 23


def nibble(at: Any) -> Any:
    """A step's nibble in its word: 0, 2, 4, 6 for the first four, 1, 3, 5, 7 for the others."""
    return at % 4 * 2 + at // 4


def words_of(steps: np.ndarray, axis: int = 0) -> np.ndarray | None:
    """Steps packed eight a word along an axis; None if they need more bits or fill no whole words.

    steps: signed bytes, or unsigned ones, which are 8 larger.
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
