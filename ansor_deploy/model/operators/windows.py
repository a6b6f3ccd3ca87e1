"""Operators that slide a window; the places that each window covers are constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from onnx import TensorProto

from ..graph.graph import FLOATS
from ..graph.sliding import windows
from .emitter import Emitter
from .operator import REAL, Operator

INT64 = TensorProto.INT64


@dataclass(frozen=True)
class Window:
    """A window of `kernel` elements along each axis; the first starts `before` the input."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def spans(self) -> list[int]:
        """The extent of a window along each axis, from its first to its last element."""
        return [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    def places(self, axis: int, made: int) -> np.ndarray:
        """The places along an axis of the elements of each of `made` windows, a row each."""
        first = np.arange(made)[:, None] * self.strides[axis] - self.before[axis]
        return first + np.arange(self.kernel[axis]) * self.dilations[axis]


def _window(emit: Emitter, kernel: tuple[int, ...], before: tuple[int, ...]) -> Window:
    one = (1,) * len(kernel)
    strides, dilations = (tuple(emit.attribute(n) or one) for n in ("strides", "dilations"))
    return Window(kernel, strides, dilations, before)


def _pads(emit: Emitter, rank: int) -> tuple[int, ...]:
    return tuple(emit.attribute("pads") or (0,) * (2 * rank))


def column_to_image(emit: Emitter) -> str:
    """For each place of the image, the sum of the elements that go there.

    A transposed convolution with weights of ones and zeros would spread NaN from infinities to
    other places.
    """
    image, block = (emit.graph.value(emit.input(index)) for index in (1, 2))
    if image is None or block is None:
        raise emit.refuse("the shapes of image and block must be constant")
    kernel, sizes = tuple(map(int, block)), tuple(map(int, image))
    (batch, columns, blocks), count = emit.shape(emit.input(0)), prod(kernel)
    emit.room_for(*sizes, count)
    channels, kind = columns // count, emit.dtype(emit.input(0))
    rows = emit.reshape(emit.input(0), batch, channels, count * blocks)
    nothing = emit.constant(np.zeros((batch, channels, 1)), kind)
    sources = emit.constant(_sources(emit, kernel, sizes), INT64)
    picked = emit("Gather", emit("Concat", rows, nothing, axis=2), sources, axis=2)
    return emit.reshape(emit.reduce("ReduceSum", picked, 3), batch, channels, *sizes)


def _sources(emit: Emitter, kernel: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """The element for each place of the image and of a block; `inside.size` where there is none."""
    rank, pads = len(kernel), _pads(emit, len(kernel))
    window = _window(emit, kernel, pads[:rank])
    ends = zip(sizes, pads[:rank], pads[rank:], window.spans, window.strides, strict=True)
    blocks = [(n + b + a - span) // s + 1 for n, b, a, span, s in ends]
    flat, inside = _places(window, sizes, blocks)
    found = np.full((prod(sizes), prod(kernel)), inside.size)
    block, tap = np.nonzero(inside)
    found[flat[block, tap], tap] = tap * len(inside) + block
    return found


def transposed_convolution(emit: Emitter) -> str | None:
    """Express `output_shape` as padding, since TVM ignores it."""
    wanted = emit.attribute("output_shape")
    if not wanted:
        return None
    rank = len(wanted)
    sizes, kernel = emit.shape(emit.input(0))[2:], emit.shape(emit.input(1))[2:]
    window = _window(emit, kernel, (0,) * rank)
    extra = list(emit.attribute("output_padding") or [0] * rank)
    steps = [s * (n - 1) for s, n in zip(window.strides, sizes, strict=True)]
    natural = [a + b + c for a, b, c in zip(steps, window.spans, extra, strict=True)]
    total = [made - want for made, want in zip(natural, wanted[-rank:], strict=True)]
    # If the result is smaller than asked for, the rest is added at its end.
    extra = [more - min(over, 0) for more, over in zip(extra, total, strict=True)]
    over = [max(n, 0) for n in total]
    half = [n // 2 for n in over]
    rest = [n - h for n, h in zip(over, half, strict=True)]
    pads = half + rest if emit.attribute("auto_pad") == "SAME_UPPER" else rest + half
    kept = {e.name: emit.attribute(e.name) for e in emit.node.attribute}
    kept.update(output_shape=None, auto_pad=None, pads=pads, output_padding=extra)
    return emit("ConvTranspose", *emit.node.input, **kept)


def max_pool(emit: Emitter) -> list[str] | None:
    """MaxPool with the places of the maxima; the elements of each window are gathered."""
    if not emit.wants(1):
        return None
    data, kind = emit.input(0), emit.dtype(emit.input(0))
    batch, channels, *sizes = emit.shape(data)
    made = emit.shape(emit.node.output[0])
    flat, inside = _flat_places(emit, sizes, made[2:])
    windows, count = flat.shape
    rows = emit.reshape(data, batch * channels, prod(sizes))
    picked = emit("Gather", rows, emit.constant(flat.reshape(-1), INT64), axis=1)
    picked = emit.reshape(picked, batch * channels, windows, count)
    lowest = emit.constant(_least(kind), kind)
    picked = emit("Where", emit.constant(inside[None], TensorProto.BOOL), picked, lowest)
    most = emit.reduce("ReduceMax", picked, 2)
    # Of equal elements the first counts: places increase within a window.
    order = np.where(inside, flat, prod(sizes))[None]
    none = emit.constant(prod(sizes), INT64)
    hit = emit("Equal", picked, most)
    if kind in FLOATS and emit.graph.opset >= 9:
        hit = emit("Or", hit, emit("IsNaN", picked))
    place = emit("Where", hit, emit.constant(order, INT64), none)
    first = emit.reshape(emit.reduce("ReduceMin", place, 2), batch * channels, windows)
    if emit.attribute("storage_order", 0):
        turned = np.arange(prod(sizes)).reshape(sizes[::-1]).T.reshape(-1)
        first = emit("Gather", emit.constant(turned, INT64), first)
    offset = np.arange(batch * channels)[:, None] * prod(sizes)
    indices = emit("Add", first, emit.constant(offset, INT64))
    return [emit.reshape(most, *made), emit.reshape(indices, *made)]


def _least(kind: int) -> float:
    return -np.inf if kind in FLOATS else {TensorProto.INT8: -128}.get(kind, 0)


def _flat_places(
    emit: Emitter, sizes: list[int], made: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """(place in a channel of each element of each window, whether it is inside)."""
    kernel = tuple(emit.attribute("kernel_shape"))
    emit.room_for(*made, *kernel)
    begins = tuple(one.before for one in windows(emit.node, sizes, kernel))
    return _places(_window(emit, kernel, begins), sizes, made)


def _places(
    window: Window, sizes: Sequence[int], made: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """(place in a channel of each element of each of `made` windows, whether it is inside)."""
    flat, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for axis in range(len(sizes)):
        along = window.places(axis, made[axis])
        within = (along >= 0) & (along < sizes[axis])
        along = np.clip(along, 0, sizes[axis] - 1)
        flat = _crossed(flat * sizes[axis], along, np.add)
        inside = _crossed(inside, within, np.logical_and)
    return flat, inside


def _crossed(left: np.ndarray, right: np.ndarray, join: np.ufunc) -> np.ndarray:
    """Windows and their elements, combined with those along one more axis."""
    joined = join(left[:, None, :, None], right[None, :, None, :])
    return joined.reshape(len(left) * len(right), -1)


OPERATORS = (
    Operator("Col2Im", since=18, types=REAL | {"int64"}, expand=column_to_image),
    Operator("ConvTranspose", expand=transposed_convolution),
    Operator("MaxPool", expand=max_pool),
)
