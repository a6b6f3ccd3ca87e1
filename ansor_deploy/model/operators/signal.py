"""Fourier transforms of static length as products with constant matrices.

X[k] = sum over t of x[t] * exp(-2 pi i k t / N). A complex number is two real ones along the last
axis, so one matrix maps (t, real or imaginary) to (k, real or imaginary).
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .emitter import Emitter
from .operator import REAL, Operator

INT64 = TensorProto.INT64
# The types of signals, and of the axis, the length and the step.
TYPES = REAL | {"int32", "int64"}


def fourier(emit: Emitter) -> str:
    """The transform along one axis, or its inverse; only half of it if that is enough."""
    shape = emit.shape(emit.input(0))
    axis = axis_of(emit) % len(shape)
    inverse, onesided = (bool(emit.attribute(name, 0)) for name in ("inverse", "onesided"))
    whole = 2 * (shape[axis] - 1) if inverse and onesided else shape[axis]
    length = _constant(emit, 1, whole)
    emit.room_for(shape[axis] * shape[-1], length)
    matrix = transform(shape[axis], shape[-1], length, inverse=inverse, onesided=onesided)
    order = [at for at in range(len(shape) - 1) if at != axis] + [axis, len(shape) - 1]
    moved = emit("Transpose", emit.input(0), perm=order)
    made = _transformed(emit, moved, [shape[at] for at in order[:-2]], matrix)
    return emit("Transpose", made, perm=np.argsort(order).tolist())


def short_time_fourier(emit: Emitter) -> str:
    """The transform of each frame: gather frames, multiply them by the window, transform them."""
    signal = emit.input(0)
    batch, samples, parts = (*emit.shape(signal), 1)[:3]
    window = emit.input(2)
    length = _constant(emit, 3, emit.shape(window)[0] if window else 0)
    step = _constant(emit, 1, 0)
    count = (samples - length) // step + 1
    emit.room_for(count, length)
    places = np.arange(count)[:, None] * step + np.arange(length)
    data = emit.reshape(signal, batch, samples, parts)
    frames = emit("Gather", data, emit.constant(places, INT64), axis=1)
    if window:
        frames = emit("Mul", frames, emit.reshape(window, length, 1))
    onesided = bool(emit.attribute("onesided", 1)) and parts == 1
    emit.room_for(length * parts, length)
    matrix = transform(length, parts, length, inverse=False, onesided=onesided)
    return _transformed(emit, frames, [batch, count], matrix)


def transform(given: int, parts: int, length: int, *, inverse: bool, onesided: bool) -> np.ndarray:
    """The matrix, of shape (given, parts, made, 2), that transforms `given` numbers.

    parts: 1 for real numbers, 2 for complex ones. length: of the signal; more numbers are cut off,
    and fewer are padded with zeros. onesided: half of the spectrum is made, or, for the inverse,
    given; the inverse is then real, and its matrix has the shape (given, parts, made, 1).
    """
    half = length // 2 + 1
    rows = np.arange(min(given, half if inverse and onesided else length))
    made = np.arange(half if onesided and not inverse else length)
    angle = 2 * np.pi * (np.outer(rows, made) % length) / length
    sign = 1.0 if inverse else -1.0
    cosine, sine = np.cos(angle), sign * np.sin(angle)
    full = np.zeros((given, 2, len(made), 2))
    full[: len(rows), 0] = np.stack([cosine, sine], -1)
    full[: len(rows), 1] = np.stack([-sine, cosine], -1)
    if not inverse:
        return full[:, :parts]
    if onesided:  # the other half is the conjugate of this one
        mirrored = (np.arange(given) > 0) & (2 * np.arange(given) != length)
        full = full[..., :1] * np.where(mirrored, 2.0, 1.0)[:, None, None, None]
    return full[:, :parts] / length


def _transformed(emit: Emitter, name: str, before: list[int], matrix: np.ndarray) -> str:
    """The product of a tensor's last two axes with the matrix. before: the sizes of the others."""
    given, parts, made, results = matrix.shape
    kind = emit.dtype(emit.input(0))
    factor = emit.constant(matrix.reshape(given * parts, made * results), kind)
    flat = emit.reshape(name, *before, given * parts)
    return emit.reshape(emit("MatMul", flat, factor), *before, made, results)


def axis_of(emit: Emitter) -> int:
    """The axis that a DFT transforms, which older versions have as an attribute."""
    if emit.graph.opset < 20:
        return int(emit.attribute("axis", 1))
    return _constant(emit, 2, -2)


def _constant(emit: Emitter, index: int, absent: int) -> int:
    return int(emit.constant_input(index).reshape(())) if emit.input(index) else absent


OPERATORS = (
    Operator("DFT", since=17, types=TYPES, expand=fourier),
    Operator("STFT", since=17, types=TYPES, expand=short_time_fourier),
)
