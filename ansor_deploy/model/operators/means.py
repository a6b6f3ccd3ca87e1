"""Means of quantised numbers, over axes or over windows.

    AveragePool(x)    -->    ConvInteger(x, ones, group=channels) * (x_scale / (y_scale * count))

The sums are int32, so they do not depend on the order in which a processor adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod

import numpy as np
from onnx import TensorProto

from ..graph.graph import Shape
from ..graph.sliding import Windows, windows
from .emitter import Emitter
from .quantization import FLOAT, after_zero, centred, parameter, requantise

Ends = tuple[str, str]  # the names of a scale and a zero point


def mean_of(
    emit: Emitter, name: str, given: Ends, made: Ends, axes: Iterable[int], count: str
) -> str:
    """The mean of quantised numbers over some axes, which are kept.

    given, made: scale and zero point of the numbers, and of the mean. count: the tensor that holds
    how many numbers a mean has.
    """
    total = emit.reduce("ReduceSum", centred(emit, name, parameter(emit, given[1])), *axes)
    return requantise(emit, total, _in_steps(emit, given, made, count), made[1])


def window_means(
    emit: Emitter, name: str, shape: Shape, given: Ends, made: Ends, counts: str = ""
) -> str:
    """The mean of each window of an average pool, by the node's attributes.

    shape: of the numbers, (N, C, ...). given, made: as in `mean_of`. counts: the tensor that holds
    how many numbers each mean has, if a run decides that. Where padding counts, a window has all
    its elements, even beyond the padding. Ties are rounded after the zero point is added.
    """
    pool = windows(emit.node, shape[2:], emit.attribute("kernel_shape"))
    if not counts and all(one.is_whole for one in pool):
        count = emit.constant(prod(shape[2:]))
        return mean_of(emit, name, given, made, range(2, len(shape)), count)
    total = _window_sums(emit, name, shape[1], given[1], pool)
    factor = _in_steps(emit, given, made, counts or _counts(emit, pool))
    return after_zero(emit, emit("Mul", emit.cast(total, FLOAT), factor), made[1])


def _in_steps(emit: Emitter, given: Ends, made: Ends, count: str) -> str:
    """The factor from a sum of `count` numbers to steps of their mean."""
    steps = emit("Mul", parameter(emit, made[0]), count)
    return emit("Div", parameter(emit, given[0]), steps)


def _window_sums(
    emit: Emitter, name: str, channels: int, zero: str, pool: Sequence[Windows]
) -> str:
    """The sums of bytes minus their zero point, which the border holds."""
    kernel = [one.kernel for one in pool]
    emit.room_for(channels, *kernel)
    return emit(
        "ConvInteger",
        name,
        emit.constant(np.ones((channels, 1, *kernel)), TensorProto.INT8),
        zero,
        group=channels,
        kernel_shape=kernel,
        strides=[one.stride for one in pool],
        dilations=[one.dilation for one in pool],
        pads=[one.before for one in pool] + [one.after for one in pool],
    )


def _counts(emit: Emitter, pool: Sequence[Windows]) -> str:
    """The number of elements of each mean: one count, or one for each place."""
    emit.room_for(*(one.made for one in pool))
    counts = reduce(np.multiply.outer, [one.counts for one in pool])
    if emit.attribute("count_include_pad", 0):
        counts = np.full_like(counts, prod(one.kernel for one in pool))
    one = len(np.unique(counts)) == 1
    return emit.constant(np.unique(counts).reshape(()) if one else counts[None, None])
