"""Transposed convolution as a convolution that multiplies by no inserted zero.

An output position t = i * stride + k mixes only inputs i and taps k of the same remainder
r = t mod stride. The stride's phases become output channels of one dense convolution; its
result is interleaved (sub-pixel convolution, Shi et al. 2016):

    out[i * S + k, o] += x[i, c] * w[c, o, k]
    -->
    y[q, r, o] = sum over j < ceil(K / S), c: x[q - j, c] * w[c, o, r + S * j]
    out[q * S + r, o] = y[q, r, o]                     cropped by the padding
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._tvm import relax
from .dataflow import constant_of

SPATIAL = {3: "W", 4: "HW", 5: "DHW"}
Emit = Callable[[Any], Any]


def transposed_convolution(
    emit: Emit, data: Any, weight: np.ndarray, attrs: Any, shape: list[int]
) -> Any:
    """The result, channels last; None for grouped or dilated ones.

    emit: binds an expression to a variable. data: channels last. weight: [in, out, taps...].
    shape: of the result, channels first.
    """
    dims = weight.ndim - 2
    if int(attrs.groups) != 1 or any(int(d) != 1 for d in attrs.dilation):
        return None
    extents = [int(extent) for extent in data.ty.shape][1:-1]
    taps = weight.shape[2:]
    # Of a single input nothing overlaps: with a stride as long as the kernel no tap is wasted.
    strides = [
        tap if extent == 1 else int(stride)
        for stride, tap, extent in zip(attrs.strides, taps, extents, strict=True)
    ]
    steps = [math.ceil(tap / stride) for tap, stride in zip(taps, strides, strict=True)]
    begins = [int(padding) for padding in attrs.padding][:dims]
    ends = [begin + size for begin, size in zip(begins, shape[2:], strict=True)]
    counts = [math.ceil(end / stride) for end, stride in zip(ends, strides, strict=True)]
    spatial = SPATIAL[weight.ndim]
    convolution = getattr(relax.op.nn, f"conv{dims}d")
    phases = convolution(
        data,
        constant_of(_phase_kernel(weight, strides, steps)),
        padding=_padding(extents, steps, counts),
        data_layout=f"N{spatial}C",
        kernel_layout=f"{spatial}IO",
    )
    joined = _interleave(emit, emit(phases), strides, weight.shape[1])
    return emit(relax.op.strided_slice(joined, list(range(1, 1 + dims)), begins, ends))


def _phase_kernel(weight: np.ndarray, strides: list[int], steps: list[int]) -> np.ndarray:
    """[taps / stride..., in, stride... x out], the taps of a phase in reverse order."""
    dims = len(strides)
    padded = [n * s - k for n, s, k in zip(steps, strides, weight.shape[2:], strict=True)]
    full = np.pad(weight, [(0, 0), (0, 0), *((0, extra) for extra in padded)])
    pairs = [size for pair in zip(steps, strides, strict=True) for size in pair]
    split = full.reshape(*weight.shape[:2], *pairs)
    step_axes, phase_axes = range(2, 2 + 2 * dims, 2), range(3, 3 + 2 * dims, 2)
    ordered = split.transpose(*step_axes, 0, *phase_axes, 1)
    reversed_ = np.flip(ordered, tuple(range(dims)))
    outputs = math.prod(strides) * weight.shape[1]
    return np.ascontiguousarray(reversed_.reshape(*steps, weight.shape[0], outputs))


def _padding(extents: list[int], steps: list[int], counts: list[int]) -> list[int]:
    """Padding with which position q sees inputs q - steps + 1 to q, for q below `counts`."""
    before = [step - 1 for step in steps]
    after = [max(0, count - extent) for count, extent in zip(counts, extents, strict=True)]
    return [*before, *after]


def _interleave(emit: Emit, phases: Any, strides: list[int], outputs: int) -> Any:
    """[n, q..., r... x o] to [n, q x S + r..., o]."""
    dims = len(strides)
    batch, *made, _ = (int(extent) for extent in phases.ty.shape)
    split = emit(relax.op.reshape(phases, [batch, *made, *strides, outputs]))
    pairs = [axis for d in range(dims) for axis in (1 + d, 1 + dims + d)]
    mixed = emit(relax.op.permute_dims(split, [0, *pairs, 1 + 2 * dims]))
    sizes = [count * stride for count, stride in zip(made, strides, strict=True)]
    return emit(relax.op.reshape(mixed, [batch, *sizes, outputs]))
