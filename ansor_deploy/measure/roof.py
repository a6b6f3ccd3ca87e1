"""What a kernel takes at least: by the arithmetic of its threads, and by where its tensors lie.

The roofline (Williams et al., 2009), with a roof for each cache.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from ..marks.outside import PADDED

if TYPE_CHECKING:
    from ..model.tasks import Task
    from ..runtime.profile import KernelTime, Profile
    from ..target import Target

# By how many times Winograd's tiles take fewer multiplications along an axis of a window, at best.
SAVED = 2.0
# Operators that read their weights in every step, of which each waits for the one before.
STEPWISE = ("gru", "lstm", "rnn")
_FLOAT = 4  # bytes
_DENSE = re.compile(r"conv\dd ")
_STEPS = re.compile(r" ([sd])(\d+)(?= )")  # of a title: the stride and the dilation
_PLACE = re.compile(r" @([\dx]+)")  # of a title: the size of the image, behind the number of images

Shapes = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Roof:
    """Limits of a run on so many threads.

    gflops: float32 multiply-adds that these cores can do. levels: (bytes, bytes a second) by which
    tensors move that lie in a cache of all these cores together, or, the last, in memory; none
    where nobody measured. byte_gops: multiply-adds of bytes, where somebody measured.
    """

    threads: int
    gflops: float
    levels: tuple[tuple[float, float], ...] = ()
    byte_gops: float | None = None

    def seconds(self, kernel: KernelTime) -> float | None:
        """What the kernel's task takes at least: as if the caches had all that they can hold.

        Where it adds up products of bytes, these are all its arithmetic. None for no task's kernel,
        and where only data would limit it and no speed is known.
        """
        task = kernel.task or {}
        if "bytes" not in task:
            return None
        size = task["bytes"]
        computed = flops(task) - _on_padding(task["title"], kernel.shapes, task["flops"])
        products, written = task.get("byte_products", 0.0), _written(kernel.shapes)
        least = max(self._computing(computed, products), self._moving(size, written))
        return max(least, self._stepping(kernel.op, kernel.shapes, size)) or None

    def room(self, profile: Profile) -> float:
        """Seconds of a run that better kernels could save at most, of those that have a limit."""
        limits = ((one.seconds, self.seconds(one)) for one in profile.kernels)
        return sum(max(0.0, taken - least) for taken, least in limits if least)

    def least(self, task: Task, products: float = 0.0, *, rewrites: bool) -> float:
        """Seconds below which no program of a task runs; 0 where nothing is known to limit it.

        products: of bytes, that it adds up. rewrites: whether a program may compute the same in
        fewer multiplications.
        """
        made = task.workload
        axes = _windows(task.title) if rewrites and made.op.startswith("conv") else ()
        computed = task.flops - _on_padding(task.title, made.shapes, task.flops)
        fewest = computed / SAVED ** sum(window > 1 for window in axes)
        moving = self._moving(made.bytes, _written(made.shapes))
        least = max(self._computing(fewest, products), moving)
        return max(least, self._stepping(made.op, made.shapes, made.bytes))

    def share(self, kernel: KernelTime) -> float | None:
        """That of the kernel's time; None where it is not known."""
        least = self.seconds(kernel)
        return least / kernel.seconds if least and kernel.seconds else None

    def _computing(self, computed: float, products: float) -> float:
        rate, amount = (self.byte_gops, 2 * products) if products else (self.gflops, computed)
        return amount / ((rate or math.inf) * 1e9)

    def _moving(self, size: float, written: float) -> float:
        """Seconds to move so many bytes, of which some are written: caches do so while they read.

        written: these at most, where a kernel writes a part of a larger tensor.
        """
        cached = any(size <= limit for limit, _ in self.levels[:-1])
        beside = min(written, size / 2) if cached else 0.0
        return (size - beside) / self._speed(size)

    def _stepping(self, op: str, shapes: Shapes, size: float) -> float:
        """Seconds that a recurrent layer's steps take to read its weights; 0 of anything else.

        The first caches may keep a part of them from one step to the next.
        """
        if op not in STEPWISE:
            return 0.0
        weights = _weights(shapes, size)
        kept = self.levels[0][0] if self.levels else math.inf
        return shapes[0][0] * max(0.0, weights - kept) / self._speed(weights)

    def _speed(self, size: float) -> float:
        """Bytes a second by which so many move from where they all fit."""
        return max((rate for limit, rate in self.levels if size <= limit), default=math.inf)


def _written(shapes: Shapes) -> float:
    """Bytes of a kernel's result, of float32."""
    return _FLOAT * math.prod(shapes[-1]) if shapes else 0.0


def _weights(shapes: Shapes, size: float) -> float:
    """Bytes of a recurrent layer's weights, which stand behind its inputs and may be of 16 bits.

    size: of all its tensors, of which the others are of float32.
    """
    inputs, *others = shapes
    count = len(list(takewhile(lambda shape: len(shape) == len(inputs) - 1, others)))
    return size - _FLOAT * sum(map(math.prod, (inputs, *others[count:])))


def flops(task: Mapping[str, Any]) -> float:
    """Operations that a profiled kernel of a task does, in its own rewriting."""
    return float(task["flops"]) / _saved(task)


def _saved(task: Mapping[str, Any]) -> float:
    """How many times fewer multiplications the task's rewriting has than the task.

    Winograd's F(m, r) takes m + r - 1 instead of m x r, along each axis with a window r above one.
    """
    if not (rewriting := task.get("rewriting")):
        return 1.0
    size = int(rewriting.split()[-1])
    return math.prod(size * r / (size + r - 1) for r in _windows(task["title"]) if r > 1)


def _on_padding(title: str, shapes: Shapes, computed: float) -> float:
    """Operations of a convolution on zeros around its image, which it may leave out.

    computed: all that it does. Channels of weights and results are as they lie in memory.
    """
    windows, steps, image = _windows(title), dict(_STEPS.findall(title)), _image(title)
    result = shapes[-1] if shapes else ()
    if len(result) != len(windows) + 2 or not image:
        return 0.0
    stride, dilation = (int(steps.get(letter, 1)) for letter in "sd")
    axes = [
        (n, _places((w, stride, dilation), count))
        for n, w, count in zip(image, windows, result[1:], strict=False)
    ]
    products = math.prod(len(places) for _, places in axes)
    left_out = products - math.prod(_reading(n, places) for n, places in axes)
    if title.startswith("depthwise"):
        return 2.0 * result[0] * result[-1] * left_out
    padded = math.prod(max(places) + 1 for _, places in axes)
    large = padded >= PADDED * math.prod(image)
    return computed * left_out / products if large and _DENSE.match(title) else 0.0


def _places(window: tuple[int, int, int], results: int) -> list[int]:
    """What the taps of an axis read. window: its taps, stride and dilation."""
    taps, stride, dilation = window
    return [at * stride + tap * dilation for at in range(results) for tap in range(taps)]


def _reading(size: int, places: Sequence[int]) -> int:
    """How many of them are in the image, which is taken to lie amid its padding."""
    before = -(-max(0, max(places) + 1 - size) // 2)
    return sum(0 <= at - before < size for at in places)


def _windows(title: str) -> list[int]:
    """The extents of a convolution's window, by its title; none of anything else."""
    _, windows, *_ = f"{title}  ".split(" ")
    return [int(word) for word in windows.split("x") if word.isdigit()]


def _image(title: str) -> list[int]:
    """The extents of a convolution's image; none without one in the title."""
    place = _PLACE.search(title)
    return [int(size) for size in place[1].split("x")][-len(_windows(title)) :] if place else []


def roof_of(target: Target, threads: int, profiles: Sequence[Profile], *, here: bool) -> Roof:
    """The limits of a target on so many threads, of its cores at most; 0 for all of them.

    here: whether this machine runs it, which is measured then, for products of bytes if profiles
    have any. Of another one and of a GPU, what caches give is not known, and arithmetic of floats
    alone limits.
    """
    of_bytes = any(products(one) for profile in profiles for one in profile.kernels)
    if here and target.gpu is None:
        return measured_roof(target, threads, of_bytes=of_bytes)
    count = min(threads or target.cores, target.cores)
    return Roof(count, (target.peak_gflops or math.inf) * count / target.cores)


def measured_roof(target: Target, threads: int = 0, *, of_bytes: bool) -> Roof:
    """The limits of this machine, measured, which takes a second, and in a process once.

    of_bytes: whether products of bytes are to be limited as well.
    """
    from .byte_peak import byte_gops
    from .peaks import bandwidths, float_gflops

    count = min(threads or target.cores, target.cores)
    bytes_ = count * byte_gops(target) if of_bytes else None
    return Roof(count, count * float_gflops(target), bandwidths(target, count), bytes_)


def products(kernel: KernelTime) -> float:
    """Products of bytes that a kernel adds up."""
    return float((kernel.task or {}).get("byte_products", 0.0))
