"""Guarded tensors: a kernel that writes or reads beside one is noticed.

    | 64 KiB of 0x7F | tensor | 64 KiB of 0x7F |

A write beyond the tensor changes a guard. A read beyond it gives a number so large (3.4e38 of
float32) that it shows in the output wherever it counts; NaN would vanish in a maximum.
"""

from __future__ import annotations

import numpy as np

from ..runtime import native

_BYTES = 1 << 16
_GUARD = 0x7F


class Guarded:
    """A tensor on the CPU that holds an array, and that knows whether it still does.

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
        self._guards = whole[:_BYTES], whole[_BYTES + size :]
        self.array = self._inside.view(array.dtype).reshape(array.shape)
        self.tensor = native.view(self._inside.view(np.uint8), array.shape, str(array.dtype))
        self.restore()

    def restore(self) -> None:
        """Write the array and the guards again."""
        self._inside[:] = self._image
        for guard in self._guards:
            guard.fill(_GUARD)

    def keep(self) -> None:
        """Take what the tensor holds now for the array."""
        self._image = self._inside.copy()

    def guards_unchanged(self) -> bool:
        """Whether nothing was written on either side of the tensor."""
        return all(bool((guard == _GUARD).all()) for guard in self._guards)

    def unchanged(self) -> bool:
        """Whether nothing was written on either side, nor to the tensor."""
        return self.guards_unchanged() and np.array_equal(self._inside, self._image)
