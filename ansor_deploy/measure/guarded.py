"""Guarded memory, which shows whether a kernel writes or reads outside its tensors.

    | 64 KiB of 0x7F | tensor | 64 KiB of 0x7F |

A write beyond the tensor changes a guard. A read beyond it gives a number so large (3.4e38 as
float32) that it shows in any output that depends on it; NaN would vanish in a maximum.

The runtime's temporary buffers come from pages that each thread keeps, with the contents of the
previous kernel. A candidate that forgets to write a part of a buffer would find the right values
there, so these pages are filled as well.
"""

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from ..runtime import native

_BYTES = 1 << 16
_GUARD = 0x7F
_PAGES = 16  # pages of a thread: more buffers than any kernel has at a time
_CPU = 1
_ALL = 0
_WORK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class Guarded:
    """A tensor on the CPU that holds an array, and can tell whether it still does.

    size: bytes of the tensor. array: its present contents, in the same memory. The memory is the
    runtime's own: NumPy asks for huge pages, which a deployed library does not have.
    """

    def __init__(self, array: np.ndarray) -> None:
        image = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.size = size = image.size
        # As the largest words that divide the size, since these are compared fastest.
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
        """Make the tensor's present contents the array."""
        self._image = self._inside.copy()

    def guards_unchanged(self) -> bool:
        """Whether nothing was written on either side of the tensor."""
        return all(bool((guard == _GUARD).all()) for guard in self._guards)

    def unchanged(self) -> bool:
        """Whether nothing was written on either side, nor to the tensor."""
        return self.guards_unchanged() and np.array_equal(self._inside, self._image)


def poison_workspaces() -> None:
    """Fill the pages of the calling thread and of the runtime's other threads."""
    _libraries()[0].TVMBackendParallelLaunch(_fill, None, _ALL)


@_WORK
def _fill(task: int, group: Any, data: Any) -> int:
    runtime, libc = _libraries()
    pages = [runtime.TVMBackendAllocWorkspace(_CPU, 0, 1, 2, 32) for _ in range(_PAGES)]
    for page in pages:  # a request for one byte gets the smallest free page
        ctypes.memset(page, _GUARD, libc.malloc_usable_size(page))
    for page in reversed(pages):
        runtime.TVMBackendFreeWorkspace(_CPU, 0, page)
    return 0


@lru_cache(maxsize=1)
def _libraries() -> tuple[Any, Any]:
    native.ffi()
    runtime, libc = ctypes.CDLL(str(native.library())), ctypes.CDLL(None)
    integer, pointer = ctypes.c_int, ctypes.c_void_p
    sizes = [integer, integer, ctypes.c_uint64, integer, integer]
    runtime.TVMBackendAllocWorkspace.argtypes = sizes
    runtime.TVMBackendAllocWorkspace.restype = pointer
    runtime.TVMBackendFreeWorkspace.argtypes = [integer, integer, pointer]
    runtime.TVMBackendParallelLaunch.argtypes = [_WORK, pointer, integer]
    libc.malloc_usable_size.argtypes = [pointer]
    libc.malloc_usable_size.restype = ctypes.c_size_t
    return runtime, libc
