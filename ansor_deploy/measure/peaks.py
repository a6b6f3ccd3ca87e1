"""The peak rates of this machine's cores: float32 multiply-adds, and bytes read from each cache.

Sums that stay in registers, in all registers but four for factors, are limited only by the
arithmetic units. Sums of data are limited by the cache or memory where the data lies. Memory
delivers more to several streams than to one. Writing is no faster than reading, but caches do both
at once (`roof.py`). There are many short calls, so that some run while other processes are idle.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen.kernels.candidate import COMPUTE, build
from ..runtime import native
from ..system.host import ask_for_matrices
from ..target import Target

_STEPS, _REPEATS = 10_000, 500  # steps and calls for arithmetic; a call takes some 50 us
_SUMS, _STREAMS = 8, 4
# A small part is read at this many places in turn, since first caches read some at half speed.
_PLACES = 3
_FILLED = 4  # to measure a cache, one of this many parts of it is read
_LARGEST = 1 << 24  # most bytes that are read to measure a cache
_BEYOND = 1 << 27  # bytes that hardly any cache holds; each call reads the next part of them
_READ, _TIMES = 1 << 21, 100  # least bytes of a call, and the number of calls

_ARITHMETIC = """
@T.prim_func(s_tir=True)
def main(factors: T.Buffer((2, {lanes}), "float32"), sums: T.Buffer(({count}, {lanes}), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for _ in T.serial({steps}):
        for j in T.unroll({count}):
            for v in T.vectorized({lanes}):
                sums[j, v] = sums[j, v] * factors[0, v] + factors[1, v]
"""

_READING = """
@T.prim_func(s_tir=True)
def main(
    data: T.Buffer(({rows}, {sums}, {lanes}), "float32"),
    counts: T.Buffer((4,), "int32"),
    sums: T.Buffer(({sums}, {lanes}), "float32"),
):
    T.func_attr({{"tirx.noalias": True}})
    for _, i in T.grid(counts[0], counts[1]):
        for k in T.unroll({streams} * {sums}):
            for v in T.vectorized({lanes}):
                sums[k % {sums}, v] = sums[k % {sums}, v] + data[
                    (counts[3] * {streams} + k // {sums}) * counts[1] + i, k % {sums}, v
                ]
    counts[3] = T.truncmod(counts[3] + 1, counts[2])
"""


@lru_cache(maxsize=8)
def float_gflops(target: Target) -> float:
    """The 10^9 float32 operations a second of one core; a multiply-add counts as two.

    target: a target whose code this machine runs.
    """
    lanes, count = _lanes(target), target.vector_registers - 4
    library, _ = compiled(_ARITHMETIC.format(lanes=lanes, count=count, steps=_STEPS), target)
    given = [np.full((2, lanes), 0.5, "float32"), np.zeros((count, lanes), "float32")]
    seconds = _fastest(library, [*map(native.tensor, given)], _REPEATS)
    return 2.0 * _STEPS * count * lanes / seconds / 1e9


@lru_cache(maxsize=8)
def bandwidths(target: Target, threads: int) -> tuple[tuple[float, float], ...]:
    """(bytes, bytes a second) of each cache and of memory, read by a number of threads.

    target: a target whose code this machine runs. The bytes are the size of the cache for all the
    threads together, the smallest cache first; the last pair is memory's, with infinite bytes.
    """
    caches = threads * target.l1_bytes, threads * target.l2_bytes, target.l3_bytes
    parts = [min(size // _FILLED, _LARGEST) // threads for size in caches if size]
    rates = _rates(target, threads, [*parts, _BEYOND // threads])
    return tuple(zip([*filter(None, map(float, caches)), float("inf")], rates, strict=True))


def _rates(target: Target, threads: int, sizes: Sequence[int]) -> list[float]:
    """Bytes a second of all threads, where each reads `size` bytes over and over, for each size.

    A call reads a small size several times, so that it can be timed, and only a part of a large
    size; the next call reads the next part.
    """
    lanes = _lanes(target)
    row = 4 * _SUMS * lanes
    rows = max(sizes) // row
    text = _READING.format(rows=rows, sums=_SUMS, streams=_STREAMS, lanes=lanes)
    library, _ = compiled(text, target)
    ones = np.ones((rows, _SUMS, lanes), "float32")

    def rate(of_thread: Any, size: int) -> float:
        again, parts = max(1, _READ // size), max(1, size // _READ)
        places = parts if parts > 1 else _PLACES
        counts = np.array([again, size // parts // row // _STREAMS, places, 0], "int32")
        given = [of_thread, native.tensor(counts), native.tensor(ones[0])]
        return int(counts[:2].prod()) * _STREAMS * row / _fastest(library, given, _TIMES)

    with ThreadPoolExecutor(threads) as pool:
        data = list(pool.map(native.tensor, [ones] * threads))  # each in memory near to a thread
        return [sum(pool.map(rate, data, [size] * threads)) for size in sizes]


def _lanes(target: Target) -> int:
    return target.vector_bytes // 4


def compiled(text: str, target: Target, how: str = "plain") -> tuple[Any, list[dict[str, Any]]]:
    """A program for one core, built and loaded, and the calls that run it. how: as for `build`."""
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder:
        one: dict[str, Any] = {"text": text, "how": how}
        one |= {"target": replace(target, cores=1).to_json(), "path": str(Path(folder, "peak.so"))}
        made = build(one)
        ask_for_matrices()
        return native.load_module(made["path"]), made["steps"]


def _fastest(library: Any, given: Sequence[Any], repeats: int) -> float:
    """Seconds of the fastest of many calls. given: tensors."""
    return min(native.times(library, COMPUTE, given, 1, repeats))
