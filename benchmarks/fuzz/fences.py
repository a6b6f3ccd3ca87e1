"""Tensors next to a page without access: a kernel that leaves its tensor ends its process.

    | tensor | no page           or           no page | tensor |

A library's kernels are called one by one, as a run calls them, with copies of their arguments in
such memory. Inputs and outputs end right before the page, or begin right after it. Tensors of the
arena and weights begin at a multiple of `ALIGNMENT`, which kernels rely on, and so may end some
bytes before the page: these bytes must stay unchanged, and no result may depend on them.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ansor_deploy.codegen.memory.arena import ALIGNMENT
from ansor_deploy.runtime import native
from ansor_deploy.runtime.functions import open_machine

_BEHIND = 0xFF  # the byte around a tensor with a fence behind it: NaN as a float
_BEFORE = 0x7F  # the byte around a tensor with a fence before it: a very large float
_UNMAPPED = 0  # PROT_NONE of mprotect
_LIBC = ctypes.CDLL(None, use_errno=True)


class Fenced:
    """A copy of an array, directly before or behind a page without access.

    array: a view of the memory of `tensor`. step: the alignment of its address, in bytes.
    """

    def __init__(self, values: np.ndarray, step: int, behind: bool) -> None:
        size, page = values.nbytes, mmap.PAGESIZE
        room = -(-(size or 1) // page) * page
        self._pages = mmap.mmap(-1, room + page)
        whole = np.frombuffer(self._pages, np.uint8)
        fence = whole.ctypes.data + (room if behind else 0)
        if _LIBC.mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(page), _UNMAPPED):
            raise OSError(ctypes.get_errno(), "mprotect")
        self._inside = whole[:room] if behind else whole[page:]
        self._beside = _BEHIND if behind else _BEFORE
        self._inside.fill(self._beside)
        begin = (room - size) // step * step if behind else 0
        self._own = slice(begin, begin + size)
        memory = self._inside[self._own]
        self.array = memory.view(values.dtype).reshape(values.shape)
        self.array[...] = values
        self.tensor = native.view(memory, values.shape, str(values.dtype))

    def is_whole(self) -> bool:
        """Whether the bytes beside the tensor are unchanged."""
        beside = (self._inside[: self._own.start], self._inside[self._own.stop :])
        return all(bool((one == self._beside).all()) for one in beside)


@dataclass(frozen=True)
class Run:
    """The kernel calls of a run, as (symbol, function, arguments), and its outputs.

    callers: addresses of the caller's tensors.
    """

    calls: Sequence[tuple[str, Any, tuple[Any, ...]]]
    outputs: Sequence[np.ndarray]
    callers: frozenset[int]


def traced(library: Path, inputs: Sequence[np.ndarray]) -> Run:
    """The kernel calls of one run of a library."""
    machine = open_machine(library, ["main"])
    calls: list[tuple[str, Any, tuple[Any, ...]]] = []

    def note(function: Any, symbol: str, before: bool, result: Any, *arguments: Any) -> int:
        if before and symbol.startswith("kernel_"):
            calls.append((symbol, function, arguments))
        return 0

    machine["set_instrument"](native.ffi().convert(note))
    given = [native.tensor(one) for one in inputs]
    result = machine["main"](*given)
    made = [result] if isinstance(result, native.ffi().Tensor) else list(result)
    callers = frozenset(_place(one) for one in (*given, *made))
    return Run(calls, [native.array(one) for one in made], callers)


def faults(run: Run, log: Path) -> list[str]:
    """How kernels behave differently with fences beside their tensors.

    log: a file that names the running kernel. A kernel that touches a fence ends this process.
    """
    found = []
    for symbol, function, arguments in run.calls:
        before = {_key(one): _here(one).copy() for one in arguments}
        function(*arguments)
        after = {_key(one): _here(one).copy() for one in arguments}
        for behind in (True, False):
            log.write_text(f"{symbol}, fenced {'behind' if behind else 'before'}", encoding="ascii")
            steps = {key: 1 if key[0] in run.callers else ALIGNMENT for key in before}
            fenced = {key: Fenced(before[key], steps[key], behind) for key in before}
            function(*(fenced[_key(one)].tensor for one in arguments))
            same = all(fenced[key].array.tobytes() == after[key].tobytes() for key in after)
            if not (same and all(one.is_whole() for one in fenced.values())):
                found.append(f"{symbol} is another beside a fence")
    return found


def _here(tensor: Any) -> np.ndarray:
    """The tensor as an array over its own memory."""
    return np.from_dlpack(tensor)


def _place(tensor: Any) -> int:
    return int(_here(tensor).ctypes.data)


def _key(tensor: Any) -> tuple[int, tuple[int, ...]]:
    """The identity of a tensor: two arguments may be the same one."""
    here = _here(tensor)
    return int(here.ctypes.data), here.shape
