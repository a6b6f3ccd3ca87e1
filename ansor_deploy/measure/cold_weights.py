"""Cold weights: a kernel in a network does not find its weights in the caches.

Between two runs of a kernel, a network reads all its other weights. Timed calls therefore take
turns with copies of the weights, as many as add up to that:

    | weights, bias | weights, bias | weights, bias | ...       one block of memory

The block's contents are random, since no time depends on them. It is filled once and serves every
candidate, however that packs its weights; results are checked with the true weights. The block asks
for huge pages, because a library's weights are pages of a file, which are large too.
"""

import itertools
import math
import mmap
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..runtime import native
from ..runtime.tensors import Signature, numpy_dtype, seeded_arguments

MOST_COPIES = 128  # most copies; enough of them that small weights leave the first cache
_ALIGNMENT = 64  # bytes, as the runtime aligns tensors
_REPEATED = 1 << 20  # random elements, which are repeated throughout the block
_EMPTY_CALLS = 20
_turns = itertools.count()  # continues from one candidate to the next, since all share the block


class Block:
    """A processor's memory, filled with values that weights may have, and tensors in it."""

    def __init__(self, size: int, values: np.ndarray) -> None:
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        self._memory = np.frombuffer(memory, np.uint8)
        for start in range(0, size, values.size):
            piece = self._memory[start : start + values.size]
            piece[:] = values[: piece.size]

    def tensor(self, place: int, like: Any) -> Any:
        """A tensor at a place of the block, with the shape and type of another."""
        memory = self._memory[place : place + _bytes(like)]
        return native.view(memory, like.shape, str(like.dtype))


def with_copies(
    arguments: Sequence[Any],
    weights: Sequence[int],
    room: int,
    bound: int,
    seed: int,
    kind: Callable[[int, np.ndarray], Any] = Block,
) -> list[list[Any]]:
    """The arguments of several calls, each with its own weights; [] where fewer than two fit.

    weights: their positions among the arguments. room: bytes that all copies may take. bound:
    integers stay below it, as in `Signature`. kind: the class of the block, for the kind of memory.
    """
    sizes = {at: _bytes(arguments[at]) for at in weights}
    if not sizes or not (largest := max(sizes.values())):
        return []
    dtype = next(str(arguments[at].dtype) for at, size in sizes.items() if size == largest)
    sizes = {at: size for at, size in sizes.items() if str(arguments[at].dtype) == dtype}
    step = sum(map(_aligned, sizes.values()))
    count = min(room // step, MOST_COPIES)
    if count < 2:
        return []
    block, calls = _block(kind, room, dtype, bound, seed), []
    for start in range(0, count * step, step):
        call, place = list(arguments), start
        for at, size in sizes.items():
            call[at] = block.tensor(place, arguments[at])
            place += _aligned(size)
        calls.append(call)
    return calls


def alternating(calls: Sequence[Sequence[Any]], others: Mapping[int, Any]) -> list[list[Any]]:
    """The calls, where every other one has other tensors at some positions of its arguments."""
    twice = [*calls, *calls] if len(calls) % 2 else calls
    return [
        [others.get(at, one) if turn % 2 else one for at, one in enumerate(call)]
        for turn, call in enumerate(twice)
    ]


def times(function: Any, calls: Sequence[Sequence[Any]], number: int, repeat: int) -> list[float]:
    """Seconds a call, averaged over `number` calls in turn, `repeat` times.

    The time of an empty call from Python is subtracted, but at most half of the whole.
    """
    empty, found = _empty_call(calls[0]), []
    for _ in range(repeat):
        chosen = [calls[next(_turns) % len(calls)] for _ in range(number)]
        started = time.perf_counter()
        for arguments in chosen:
            function(*arguments)
        seconds = (time.perf_counter() - started) / number
        found.append(max(seconds - empty, seconds / 2))
    return found


def _empty_call(arguments: Sequence[Any]) -> float:
    """Seconds of a call with these arguments that does almost nothing."""
    nothing = native.ffi().get_global_func("ffi.Array")
    started = time.perf_counter()
    for _ in range(_EMPTY_CALLS):
        nothing(*arguments)
    return (time.perf_counter() - started) / _EMPTY_CALLS


def _bytes(tensor: Any) -> int:
    return math.prod(map(int, tensor.shape)) * numpy_dtype(str(tensor.dtype)).itemsize


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


@lru_cache(maxsize=1)
def _block(
    kind: Callable[[int, np.ndarray], Any], size: int, dtype: str, bound: int, seed: int
) -> Any:
    """A block of `size` bytes, filled with values that weights may have."""
    spec = Signature(((_REPEATED,),), (dtype,), (), bound, reduction=_REPEATED)
    (values,) = seeded_arguments(spec, seed)
    return kind(size, values.view(np.uint8))
