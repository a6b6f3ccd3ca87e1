"""The tensors of a task's function: their types, and seeded values for them.

It also converts tensors to bytes, to send them to a board and back. It needs NumPy alone, since a
board has no compiler.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .interface import TensorInfo

_LINE = 64  # bytes of a cache line
_FEW_LINES = 32 * _LINE
INT_VALUES = 4  # inputs wider than a byte have so many values, unless fewer are valid indices
_FLOAT_POISON = np.array([np.inf, np.nan, -np.inf])
_BYTE_POISON = np.array([0x7F, 0x80], np.uint8)


@dataclass(frozen=True)
class Signature:
    """Shapes and dtypes of a function's parameters, outputs among them.

    outputs: positions of the parameters that it writes. bound: integer inputs stay below it,
    because some are indices; 0 where none is an index. reduction: elements in the longest sum that
    an output element depends on. weights: positions of the parameters that are constants.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    outputs: tuple[int, ...]
    bound: int
    reduction: int
    weights: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal signature."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Signature:
        """The signature of a `to_json` object."""
        tuples = {name: tuple(data[name]) for name in ("dtypes", "outputs", "weights")}
        return cls(**{**data, **tuples, "shapes": tuple(map(tuple, data["shapes"]))})


def seeded_arguments(spec: Signature, seed: int, positive: bool = False) -> list[np.ndarray]:
    """An array for each parameter; outputs are poisoned, so that unwritten elements are noticed.

    Floats are uniform in [-s, s) with s = reduction ** -0.25: the sums of a matmul or convolution
    are then about one, where neither an activation saturates nor half precision overflows.
    positive: in [0, s), for programs that take roots or logarithms of their inputs.
    """
    rng = np.random.default_rng(seed)
    scale = spec.reduction**-0.25
    made = []
    for at, (shape, name) in enumerate(zip(spec.shapes, spec.dtypes, strict=True)):
        dtype = numpy_dtype(name)
        if at in spec.outputs:
            made.append(poisoned(shape, dtype))
        elif dtype == np.bool_ or np.issubdtype(dtype, np.integer):
            low, high = _range(dtype, spec.bound)
            # Weights of signed bytes are never -128, since two products must fit 16 bits.
            low += int(low == -high and at in spec.weights)
            made.append(rng.integers(low, high, shape).astype(dtype))
        else:
            values = rng.random(shape, np.float32)
            made.append(((values if positive else 2 * values - 1) * scale).astype(dtype))
    return made


def _range(dtype: np.dtype, bound: int) -> tuple[int, int]:
    """The least integer, and the greatest plus one. Bytes that are no index take every value."""
    if dtype == np.bool_:
        return 0, 2
    if bound or dtype.itemsize > 1:
        return 0, bound or INT_VALUES
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max) + 1


def poisoned(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """An array of values that no result consists of, so that unwritten elements are noticed.

    Several kinds take turns, because an uninitialised sum, maximum or minimum may hide one kind:
    NaN and infinities; for integers, very large and very small ones.
    """
    if dtype == np.bool_ or np.issubdtype(dtype, np.integer):
        kinds = np.repeat(_BYTE_POISON, dtype.itemsize)
    else:
        kinds = _FLOAT_POISON.astype(dtype)
    bits = kinds.view(f"u{dtype.itemsize}")  # as integers: NumPy would make valid booleans of bytes
    made = np.empty(math.prod(shape), bits.dtype)
    for at, kind in enumerate(bits):
        made[at :: len(bits)] = kind
    return made.view(dtype).reshape(shape)


def unwritten(shape: Sequence[int], dtype: str) -> np.ndarray:
    """An uninitialised array; if it is large, it begins at a cache line."""
    kind = numpy_dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size <= _FEW_LINES:  # alignment would save less than it costs to make
        return np.empty(shape, kind)
    memory = np.empty(size + _LINE, np.uint8)
    begin = -memory.ctypes.data % _LINE
    return memory[begin : begin + size].view(kind).reshape(shape)


def room_for(tensors: Iterable[TensorInfo]) -> dict[str, np.ndarray]:
    """Arrays for tensors by their names, as `unwritten`."""
    return {one.name: unwritten(one.shape, one.dtype) for one in tensors}


def counted(info: TensorInfo, outputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """The part of an output that counts. outputs: all, with their room, and their lengths."""
    whole = outputs[info.name]
    ends = {axis: int(outputs[name]) for axis, name in info.lengths}
    return whole[tuple(slice(ends.get(axis)) for axis in range(whole.ndim))]


@lru_cache(maxsize=64)
def numpy_dtype(name: str) -> np.dtype:
    """NumPy's type of a TVM type name; ml_dtypes adds bfloat16 and the 8-bit floats."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def tensor_bytes(shape: Sequence[int], dtype: str) -> int:
    """Bytes of a tensor."""
    return math.prod(shape) * numpy_dtype(dtype).itemsize


def to_bytes(arrays: Sequence[np.ndarray]) -> bytes:
    """The elements of arrays, one after the other; the reader must know types and shapes."""
    return b"".join(one.tobytes() for one in arrays)


def from_bytes(data: bytes, kinds: Sequence[tuple[tuple[int, ...], str]]) -> list[np.ndarray]:
    """The arrays of `to_bytes`, given the shape and type of each; ValueError where they differ."""
    arrays = [np.empty(shape, numpy_dtype(dtype)) for shape, dtype in kinds]
    if len(data) != (size := sum(one.nbytes for one in arrays)):
        raise ValueError(f"{len(data)} bytes of tensors that have {size}")
    stream = io.BytesIO(data)
    for one in arrays:
        stream.readinto(one.reshape(-1).view(np.uint8))
    return arrays


def memory_bytes(kinds: Sequence[tuple[tuple[int, ...], str]]) -> int:
    """Bytes that arrays of these shapes and types take `in_memory`; at least one."""
    return max(1, sum(map(_in_lines, kinds)))


def in_memory(memory: np.ndarray, kinds: Sequence[tuple[tuple[int, ...], str]]) -> list[np.ndarray]:
    """Arrays of these shapes and types in an array of bytes, each from a cache line on."""
    made, begin = [], 0
    for shape, dtype in kinds:
        part = memory[begin : begin + tensor_bytes(shape, dtype)]
        made.append(part.view(numpy_dtype(dtype)).reshape(shape))
        begin += _in_lines((shape, dtype))
    return made


def _in_lines(kind: tuple[tuple[int, ...], str]) -> int:
    return -(-tensor_bytes(*kind) // _LINE) * _LINE
