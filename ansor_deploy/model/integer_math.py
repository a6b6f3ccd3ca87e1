"""Exact integer dot products and maxima over windows in NumPy: the order of sums is free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from onnx import NodeProto

from .graph.sliding import Windows, windows


def conv_integer(
    node: NodeProto, x: np.ndarray, w: np.ndarray, *zeros: np.ndarray | None
) -> np.ndarray:
    """ConvInteger. zeros: the zero points, if there are any: one, or one for each channel."""
    x_zero, w_zero = (*zeros, None, None)[:2]
    axes = windows(node, x.shape[2:], w.shape[2:])
    inner = w.shape[1]
    groups = x.shape[1] // inner
    columns = (-1, *[1] * (w.ndim - 1))
    weight = _centred(w, w_zero, columns).reshape(groups, w.shape[0] // groups, inner, -1)
    total: np.ndarray | float = 0.0
    for at, part in enumerate(_taps(_padded(_centred(x, x_zero, columns[:-1]), axes, 0), axes)):
        total = total + weight[..., at] @ part.reshape(len(x), groups, inner, -1)
    made = [one.made for one in axes]
    return _whole(np.asarray(total).reshape(len(x), w.shape[0], *made))


def mat_mul_integer(
    _node: NodeProto, a: np.ndarray, b: np.ndarray, *zeros: np.ndarray | None
) -> np.ndarray:
    """MatMulInteger. zeros: the zero points: one, or one for each row of a and each column of b."""
    a_zero, b_zero = (*zeros, None, None)[:2]
    return _whole(_centred(a, a_zero, (-1, 1)) @ _centred(b, b_zero, (1, -1)))


def max_pool(node: NodeProto, x: np.ndarray) -> np.ndarray:
    """MaxPool of integers."""
    kernel = next(one.ints for one in node.attribute if one.name == "kernel_shape")
    axes = windows(node, x.shape[2:], kernel)
    padded = _padded(x, axes, np.iinfo(x.dtype).min)
    return np.asarray(np.maximum.reduce(list(_taps(padded, axes))))


def _centred(given: np.ndarray, zero: np.ndarray | None, shape: Sequence[int]) -> np.ndarray:
    """Integers minus their zero point, as float64. shape: of several zero points."""
    wide = given.astype(np.float64)
    if zero is None:
        return wide
    return wide - zero.astype(np.float64).reshape(() if zero.size == 1 else shape)


def _whole(total: np.ndarray) -> np.ndarray:
    """The sums as int32; those that are too large wrap around."""
    return total.astype(np.int64).astype(np.int32)


def _padded(x: np.ndarray, axes: Sequence[Windows], border: float) -> np.ndarray:
    pads = [(0, 0), (0, 0), *((one.before, one.after) for one in axes)]
    return np.pad(x, pads, constant_values=border)


def _taps(padded: np.ndarray, axes: Sequence[Windows]) -> Iterator[np.ndarray]:
    """For each position in a window, the elements at it in all windows."""
    for tap in product(*(range(one.kernel) for one in axes)):
        firsts = [at * one.dilation for at, one in zip(tap, axes, strict=True)]
        ends = [f + (one.made - 1) * one.stride + 1 for f, one in zip(firsts, axes, strict=True)]
        along = zip(firsts, ends, (one.stride for one in axes), strict=True)
        place = (Ellipsis, *(slice(*one) for one in along))
        yield padded[place]
