"""Lower bounds of kernels' times, by the arithmetic of threads and by where tensors lie.

This is the roofline (Williams et al., 2009), with a roof for each cache.
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

# Winograd's tiles take at best this many times fewer multiplications along an axis of a window.
SAVED = 2.0
# Operators that read their weights in every step; each step waits for the one before.
STEPWISE = ("gru", "lstm", "rnn")
_FLOAT = 4  # bytes
_DENSE = re.compile(r"conv\dd ")
_STEPS = re.compile(r" ([sd])(\d+)(?= )")  # the stride and the dilation in a title
_PLACE = re.compile(r" @([\dx]+)")  # in a title, the number of images and the size of an image

Shapes = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Roof:
    """The limits of a run on a number of threads.

    gflops: 10^9 float32 operations a second of these cores; a multiply-add counts as two. levels:
    (bytes, bytes a second) of each cache of all these cores together, and last of memory; empty
    where they were not measured. byte_gops: the same as gflops for bytes; None if not measured.
    """

    threads: int
    gflops: float
    levels: tuple[tuple[float, float], ...] = ()
    byte_gops: float | None = None

    def seconds(self, kernel: KernelTime) -> float | None:
        """A lower bound of the kernel's seconds, as if caches held as much as they have room for.

        If the kernel adds up products of bytes, these are all its arithmetic. None for a kernel
        that is no task's, and for one that only data would limit, where no speed is known.
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
        """Most seconds of a run that better kernels could save, of kernels with a bound."""
        limits = ((one.seconds, self.seconds(one)) for one in profile.kernels)
        return sum(max(0.0, taken - least) for taken, least in limits if least)

    def least(self, task: Task, products: float = 0.0, *, rewrites: bool) -> float:
        """Seconds that no program of a task can beat; 0 where no limit is known.

        products: how many products of bytes it adds up. rewrites: whether a program may compute the
        same with fewer multiplications.
        """
        made = task.workload
        axes = _windows(task.title) if rewrites and made.op.startswith("conv") else ()
        computed = task.flops - _on_padding(task.title, made.shapes, task.flops)
        fewest = computed / SAVED ** sum(window > 1 for window in axes)
        moving = self._moving(made.bytes, _written(made.shapes))
        least = max(self._computing(fewest, products), moving)
        return max(least, self._stepping(made.op, made.shapes, made.bytes))

    def share(self, kernel: KernelTime) -> float | None:
        """The lower bound as a share of the kernel's time; None where it is not known."""
        least = self.seconds(kernel)
        return least / kernel.seconds if least and kernel.seconds else None

    def _computing(self, computed: float, products: float) -> float:
        rate, amount = (self.byte_gops, 2 * products) if products else (self.gflops, computed)
        return amount / ((rate or math.inf) * 1e9)

    def _moving(self, size: float, written: float) -> float:
        """Seconds to move `size` bytes. Caches write while they read, memory does not.

        written: most bytes of these that are written; a kernel may write a part of a larger tensor.
        """
        cached = any(size <= limit for limit, _ in self.levels[:-1])
        beside = min(written, size / 2) if cached else 0.0
        return (size - beside) / self._speed(size)

    def _stepping(self, op: str, shapes: Shapes, size: float) -> float:
        """Seconds that a recurrent layer's steps take to read its weights; 0 for other operators.

        The first caches may keep a part of the weights from one step to the next.
        """
        if op not in STEPWISE:
            return 0.0
        weights = _weights(shapes, size)
        kept = self.levels[0][0] if self.levels else math.inf
        return shapes[0][0] * max(0.0, weights - kept) / self._speed(weights)

    def _speed(self, size: float) -> float:
        """Bytes a second from the fastest cache, or memory, that holds `size` bytes."""
        return max((rate for limit, rate in self.levels if size <= limit), default=math.inf)


def _written(shapes: Shapes) -> float:
    """Bytes of a kernel's result as float32."""
    return _FLOAT * math.prod(shapes[-1]) if shapes else 0.0


def _weights(shapes: Shapes, size: float) -> float:
    """Bytes of a recurrent layer's weights, which follow its inputs and may have 16 bits.

    size: bytes of all its tensors; the others are float32.
    """
    inputs, *others = shapes
    count = len(list(takewhile(lambda shape: len(shape) == len(inputs) - 1, others)))
    return size - _FLOAT * sum(map(math.prod, (inputs, *others[count:])))


def flops(task: Mapping[str, Any]) -> float:
    """Operations of a task's profiled kernel, after its rewriting."""
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
    """Operations of a convolution with zeros around its image, which it may leave out.

    computed: all its operations. In shapes, channels of weights and results are as they lie in
    memory.
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
    """The places that all taps along an axis read. window: its taps, stride and dilation."""
    taps, stride, dilation = window
    return [at * stride + tap * dilation for at in range(results) for tap in range(taps)]


def _reading(size: int, places: Sequence[int]) -> int:
    """How many places are in the image, if it lies in the middle of its padding."""
    before = -(-max(0, max(places) + 1 - size) // 2)
    return sum(0 <= at - before < size for at in places)


def _windows(title: str) -> list[int]:
    """The extents of a convolution's window in its title; [] for other titles."""
    _, windows, *_ = f"{title}  ".split(" ")
    return [int(word) for word in windows.split("x") if word.isdigit()]


def _image(title: str) -> list[int]:
    """The extents of a convolution's image in its title; [] without one."""
    place = _PLACE.search(title)
    return [int(size) for size in place[1].split("x")][-len(_windows(title)) :] if place else []


def roof_of(target: Target, threads: int, profiles: Sequence[Profile], *, here: bool) -> Roof:
    """The limits of a target on a number of threads, at most one a core; 0 for all cores.

    here: whether this machine runs its code. It is then measured, for products of bytes too if
    profiles have any. For another machine or a GPU, the rates of caches are not known, and float
    arithmetic is the only limit.
    """
    of_bytes = any(products(one) for profile in profiles for one in profile.kernels)
    if here and target.gpu is None:
        return measured_roof(target, threads, of_bytes=of_bytes)
    count = min(threads or target.cores, target.cores)
    return Roof(count, (target.peak_gflops or math.inf) * count / target.cores)


def measured_roof(target: Target, threads: int = 0, *, of_bytes: bool) -> Roof:
    """The limits of this machine, measured. That takes a second, once in a process.

    of_bytes: whether to measure products of bytes as well.
    """
    from .byte_peak import byte_gops
    from .peaks import bandwidths, float_gflops

    count = min(threads or target.cores, target.cores)
    bytes_ = count * byte_gops(target) if of_bytes else None
    return Roof(count, count * float_gflops(target), bandwidths(target, count), bytes_)


def products(kernel: KernelTime) -> float:
    """How many products of bytes a kernel adds up."""
    return float((kernel.task or {}).get("byte_products", 0.0))
