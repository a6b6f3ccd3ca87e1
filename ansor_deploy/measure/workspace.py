"""The runtime's temporary buffers, filled with what no kernel may use.

They come from pages that each thread keeps, with what the kernel before left in them: a
candidate that forgets to write a part of a buffer would find it right there.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from ..runtime.native import ffi, library

_PAGES = 16  # a thread; more buffers at a time than any kernel has
_CPU = 1
_ALL = 0
_POISON = 0x7F
_WORK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def poison_workspaces() -> None:
    """Fill the pages of the thread that calls, and of the others of the runtime's pool."""
    _libraries()[0].TVMBackendParallelLaunch(_fill, None, _ALL)


@_WORK
def _fill(task: int, group: Any, data: Any) -> int:
    runtime, libc = _libraries()
    pages = [runtime.TVMBackendAllocWorkspace(_CPU, 0, 1, 2, 32) for _ in range(_PAGES)]
    for page in pages:  # a request for one byte gets the smallest free page
        ctypes.memset(page, _POISON, libc.malloc_usable_size(page))
    for page in reversed(pages):
        runtime.TVMBackendFreeWorkspace(_CPU, 0, page)
    return 0


@lru_cache(maxsize=1)
def _libraries() -> tuple[Any, Any]:
    ffi()
    runtime, libc = ctypes.CDLL(str(library())), ctypes.CDLL(None)
    integer, pointer = ctypes.c_int, ctypes.c_void_p
    sizes = [integer, integer, ctypes.c_uint64, integer, integer]
    runtime.TVMBackendAllocWorkspace.argtypes = sizes
    runtime.TVMBackendAllocWorkspace.restype = pointer
    runtime.TVMBackendFreeWorkspace.argtypes = [integer, integer, pointer]
    runtime.TVMBackendParallelLaunch.argtypes = [_WORK, pointer, integer]
    libc.malloc_usable_size.argtypes = [pointer]
    libc.malloc_usable_size.restype = ctypes.c_size_t
    return runtime, libc
