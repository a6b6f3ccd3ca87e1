"""What a kernel takes at least: by the arithmetic of its threads, and by where its tensors lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..system.bandwidth import bandwidths

if TYPE_CHECKING:
    from ..runtime.profile import KernelTime
    from ..target import Target


@dataclass(frozen=True)
class Roof:
    """Limits of a run on so many threads.

    gflops: float32 multiply-adds that these cores can do. levels: (bytes, bytes a second) by which
    tensors move that lie in a cache of all these cores together, or, the last, in memory; none
    where nobody measured.
    """

    threads: int
    gflops: float
    levels: tuple[tuple[float, float], ...] = ()

    def seconds(self, kernel: KernelTime) -> float | None:
        """What the kernel's task takes at least: as if the caches had all that they can hold.

        None for no task's kernel, and where only data would limit it and no speed is known.
        """
        task = kernel.task or {}
        if "bytes" not in task:
            return None
        arithmetic = float(task["flops"]) / _saved(task) / (self.gflops * 1e9)
        rates = (rate for size, rate in self.levels if task["bytes"] <= size)
        return max(arithmetic, task["bytes"] / max(rates, default=math.inf)) or None


def _saved(task: Mapping[str, Any]) -> float:
    """How many times fewer multiplications the task's rewriting has than the task.

    Winograd's F(m, r) takes m + r - 1 instead of m x r, along each axis with a window r above one.
    """
    if not (rewriting := task.get("rewriting")):
        return 1.0
    size, (_, windows, *_) = int(rewriting.split()[-1]), f"{task['title']}  ".split(" ")
    each = (int(word) for word in windows.split("x") if word.isdigit())
    return math.prod(size * r / (size + r - 1) for r in each if r > 1)


def roof_of(target: Target, threads: int, *, here: bool) -> Roof:
    """The limits of a target on so many threads, of its cores at most; 0 for all of them.

    here: whether this machine runs it, which is measured then. Of another one, what caches give is
    not known, and arithmetic alone limits.
    """
    count = min(threads or target.cores, target.cores)
    gflops = (target.peak_gflops or math.inf) * count / target.cores
    if not here:
        return Roof(count, gflops)
    caches = (count * target.l1_bytes, count * target.l2_bytes, target.l3_bytes)
    return Roof(count, gflops, bandwidths(tuple(size for size in caches if size), count))
