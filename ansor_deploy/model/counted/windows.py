"""Convolutions, pools and normalisations of images along axes with sizes that a run decides.

    y = Conv(x), padded by one, n of x count
    -->
    y = Conv(Where(arange < n, x, 0)),  (n + 2 - 3) / stride + 1 of y count

What a window reads behind the last element that counts has to hold the value of padding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .known import Axes, Step
from .numbers import Number, Sum, least
from .sums import elements, least_known

_FIRST = 2  # the first spatial axis, behind those of images and channels


class _Window(NamedTuple):
    """The window along an axis. span: from its first to its last element."""

    span: int
    stride: int
    before: int
    behind: int


def windowed(step: Step) -> list[tuple[str, Axes]] | None:
    """A convolution or a pool."""
    own, shape = step.axes(0), step.known_shape(step.input(0))
    others = any(step.axes(at) for at in range(1, len(step.node.input)))
    if not shape or others or step.wants(1) or 1 in own:
        return None
    same, op = "SAME" in step.attribute("auto_pad", ""), step.node.op_type
    ceil = 0 if same else step.attribute("ceil_mode", 0)  # SAME leaves no rest
    axes, padded = {0: own[0]} if 0 in own else {}, dict[int, Number]()
    for axis in (at for at in own if at >= _FIRST):
        window = _window(step, axis)
        if window is None or (ceil and window.behind + window.stride > window.span):
            return None  # the last window may begin behind what counts, and then does not exist
        room = own[axis] + (window.before + window.behind - window.span)
        places = step.divided(room + (window.stride - 1) * ceil, window.stride)
        axes[axis] = places + 1
        if window.behind or ceil:
            padded[axis] = own[axis]
    if op == "AveragePool" and (ceil or (padded and not step.attribute("count_include_pad", 0))):
        return _where_known(step, _mean_of_what_counts(step, padded), axes)
    value = least_known(step, step.input(0)) if op == "MaxPool" else 0
    if op == "ConvInteger":
        value = step.input(2) or 0  # its zero point
    return _where_known(step, step.again(step.masked(step.input(0), padded, value)), axes)


def _mean_of_what_counts(step: Step, axes: Axes) -> str:
    """The means of windows, divided by the share of each window that counts.

    Padding counts where the node says so, but not what a last window reads behind it.
    """
    name, shape = step.input(0), step.shape(step.input(0))
    rank = len(shape) - _FIRST
    how = ("kernel_shape", "strides", "pads", "dilations", "auto_pad", "ceil_mode")
    words = {word: value for word in how if (value := step.attribute(word)) is not None}
    around, pads = dict(words), [0] * 2 * rank
    if step.attribute("count_include_pad", 0):
        pads = around.pop("pads", pads)
    more = [sum(one) for one in zip(pads[:rank], pads[rank:], strict=True)]
    sizes = [size + wide for size, wide in zip(shape[_FIRST:], more, strict=True)]
    ones = step.constant(np.ones((1, 1, *sizes)), step.dtype(name))
    inside = {axis: number + more[axis - _FIRST] for axis, number in axes.items()}
    total = step("AveragePool", step.masked(name, axes), count_include_pad=1, **words)
    share = step("AveragePool", step.masked(ones, inside), count_include_pad=1, **around)
    return step("Div", total, share)


def _where_known(step: Step, made: str, axes: Axes) -> list[tuple[str, Axes]] | None:
    return [(made, axes)] if step.known_shape(made) else None


def _window(step: Step, axis: int) -> _Window | None:
    """The window along an axis; None if its padding depends on the size of the axis."""
    at, weights = axis - _FIRST, step.input(1) if "Conv" in step.node.op_type else ""
    rank = len(step.shape(step.input(0))) - _FIRST
    taps = step.attribute("kernel_shape") or list(step.shape(weights)[_FIRST:])
    spread = (step.attribute("dilations") or [1] * rank)[at]
    stride = (step.attribute("strides") or [1] * rank)[at]
    span, pads = spread * (taps[at] - 1) + 1, step.attribute("pads") or [0] * 2 * rank
    before, behind = pads[at], pads[at + rank]
    kind = step.attribute("auto_pad", "NOTSET")
    if kind in ("SAME_UPPER", "SAME_LOWER"):
        if len(found := _before(step, axis, span, stride)) > 1:
            return None
        (before,) = found
        behind = span - 1 - before  # at most
    return _Window(span, stride, before, behind) if min(before, behind) >= 0 else None


def _before(step: Step, axis: int, span: int, stride: int) -> set[int]:
    """The padding before an axis under SAME, for each remainder of a length by the stride."""
    number, room = step.dims(0)[axis], step.shape(step.input(0))[axis]
    factors = number.factors if isinstance(number, Sum) else ()
    if any(by % stride for _, by in factors):
        left = set(range(stride))
    else:
        left = {(number.constant if isinstance(number, Sum) else number) % stride, room % stride}
    lower = step.attribute("auto_pad") == "SAME_LOWER"
    return {(max(0, span - (rest or stride)) + lower) // 2 for rest in left}


def opened(step: Step) -> list[tuple[str, Axes]] | None:
    """A transposed convolution: what a window writes beyond the last place is cut off."""
    own, shape = step.axes(0), step.known_shape(step.input(0))
    others = any(step.axes(at) for at in range(1, len(step.node.input)))
    words = step.attribute("output_shape"), step.attribute("auto_pad", "NOTSET")
    if not shape or others or 1 in own or words[0] or words[1] not in ("NOTSET", "VALID"):
        return None
    axes, reached = {0: own[0]} if 0 in own else {}, dict[int, Number]()
    more = step.attribute("output_padding") or [0] * (len(shape) - _FIRST)
    for axis in (at for at in own if at >= _FIRST):
        if (window := _window(step, axis)) is None:
            return None
        behind = window.span + more[axis - _FIRST] - window.behind - window.stride
        axes[axis] = own[axis] * window.stride + (behind - window.before)
        if behind > 0:  # elements behind what counts would reach into the result
            reached[axis] = own[axis]
    return _where_known(step, step.again(step.masked(step.input(0), reached)), axes)


def framed(step: Step) -> list[tuple[str, Axes]] | None:
    """The spectrum of each frame of a signal."""
    own, hop, window = step.axes(0), step.listed(1), step.known_shape(step.input(2))
    length = list(window or step.listed(3) or ())
    if not hop or not length or own.keys() - {0, 1} or any(step.axes(at) for at in (1, 2, 3)):
        return None
    axes = dict(own)
    if 1 in own:
        if least(own[1]) < length[0]:
            return None
        axes[1] = step.divided(own[1] - length[0], hop[0]) + 1
    return _where_known(step, step.again(), axes)


def averaged(step: Step) -> list[tuple[str, Axes]] | None:
    """The mean or maximum of each channel."""
    own, shape = step.axes(0), step.known_shape(step.input(0))
    if not shape or 1 in own:
        return None
    within = {axis: n for axis, n in own.items() if axis >= _FIRST}
    axes = list(range(_FIRST, len(shape)))
    if step.node.op_type == "GlobalMaxPool":
        data = step.masked(step.input(0), within, least_known(step, step.input(0)))
        made = step.reduce("ReduceMax", data, *axes)
    else:
        total = step.reduce_in_turn("ReduceSum", step.masked(step.input(0), within), axes)
        made = step("Div", total, elements(step, axes))
    return [(made, {0: own[0]} if 0 in own else {})]


def normalised(step: Step) -> list[tuple[str, Axes]] | None:
    """Normalisation of each row by itself, or by constants of channels."""
    own, shape = step.axes(0), step.known_shape(step.input(0))
    if not shape or step.wants(1) or any(step.axes(at) for at in range(1, len(step.node.input))):
        return None
    channels = step.node.op_type == "BatchNormalization"
    together = {1} if channels else range(step.attribute("axis", -1) % len(shape), len(shape))
    if any(axis in together for axis in own):
        return None
    return _where_known(step, step.again(), own)


RULES = {
    **dict.fromkeys(("Conv", "ConvInteger", "MaxPool", "AveragePool"), windowed),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), averaged),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "BatchNormalization"), normalised),
    "ConvTranspose": opened,
    "STFT": framed,
}
