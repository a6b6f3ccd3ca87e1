"""Tensors between fences, so that a kernel that leaves its own memory is seen.

    | 64 KiB of 0x7F | tensor | 64 KiB of 0x7F |

A write beyond the tensor breaks a fence. A read beyond it gives a number so large (3.4e38 of
float32) that it shows in the output wherever it counts; NaN would vanish in a maximum.
"""

from __future__ import annotations

import numpy as np

from ..runtime import native

_BYTES = 1 << 16
_FENCE = 0x7F


class Guarded:
    """A tensor on the CPU that holds an array, and that can tell whether it still does.

    size: of the tensor, in bytes. array: what it holds at any time, in the same memory.
    The memory is the runtime's own: NumPy asks for huge pages, which a deployed library has not.
    """

    def __init__(self, array: np.ndarray) -> None:
        image = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.size = size = image.size
        # In the largest words that divide it, which are compared the fastest.
        word = next(f"u{width}" for width in (8, 4, 2, 1) if size % width == 0)
        whole = np.from_dlpack(native.empty((size + 2 * _BYTES,), "uint8"))
        self._image = image.view(word)
        self._inside = whole[_BYTES : _BYTES + size].view(word)
        self._fences = whole[:_BYTES], whole[_BYTES + size :]
        self.array = self._inside.view(array.dtype).reshape(array.shape)
        self.tensor = native.view(self._inside.view(np.uint8), array.shape, str(array.dtype))
        self.restore()

    def restore(self) -> None:
        """Write the array and the fences anew."""
        self._inside[:] = self._image
        for fence in self._fences:
            fence.fill(_FENCE)

    def keep(self) -> None:
        """Take what the tensor holds now for the array."""
        self._image = self._inside.copy()

    def stands(self) -> bool:
        """Whether nothing was written on either side of the tensor."""
        return all(bool((fence == _FENCE).all()) for fence in self._fences)

    def intact(self) -> bool:
        """Whether nothing was written on either side, nor to the tensor."""
        return self.stands() and np.array_equal(self._inside, self._image)
