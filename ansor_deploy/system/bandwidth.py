"""How fast this machine moves data: from each cache, and from memory. It takes a moment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

_SECONDS, _FEWEST = 0.02, 3  # of one measurement, and its rounds
_LARGEST = 1 << 28  # bytes; what is that large lies in no cache
_MOVED = 2  # each byte is read, and one is written


@lru_cache(maxsize=8)
def bandwidths(caches: Sequence[int], threads: int) -> tuple[tuple[float, float], ...]:
    """(bytes, bytes a second) by which so many threads move what lies in a cache, and any more.

    caches: bytes of each, for all the threads, the smallest first. The last of the pairs is
    memory's, and its bytes are infinite.
    """
    found = [(float(size), _best(size // _MOVED // 2, threads)) for size in caches if size]
    largest = max(caches, default=0)
    return (*found, (float("inf"), _best(min(_LARGEST, max(1 << 25, 2 * largest)), threads)))


def _best(size: int, threads: int) -> float:
    """Bytes a second of copying an array of so many bytes, a part in each thread."""
    part = max(4096, size // threads)
    with ThreadPoolExecutor(threads) as pool:
        rates = list(pool.map(_rate, [part] * threads))
    return sum(rates)


def _rate(size: int) -> float:
    """Bytes a second by which this thread moves an array over and over: its fastest round."""
    source, target = np.ones(size, np.uint8), np.ones(size, np.uint8)  # pages that are there
    rounds = max(1, (1 << 20) // size)
    times: list[float] = []
    while len(times) < _FEWEST or sum(times) < _SECONDS:
        began = time.perf_counter()
        for _ in range(rounds):
            np.copyto(target, source)
        times.append(time.perf_counter() - began)
    return rounds * size * _MOVED / min(times)
