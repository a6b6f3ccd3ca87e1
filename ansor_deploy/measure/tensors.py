"""The tensors of a task's function: what it is called with, and what seeded inputs suit it.

And tensors as bytes, for the way to a board and back. NumPy only: a board has no compiler.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

_POISON = 0x7F


@dataclass(frozen=True)
class Signature:
    """Shapes and dtypes of a function's parameters, outputs among them.

    outputs: positions of the parameters that it writes. bound: integer inputs stay below it,
    because some are indices. reduction: elements in the longest sum behind an output element.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    outputs: tuple[int, ...]
    bound: int
    reduction: int

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal signature."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Signature:
        """The signature of a `to_json` object."""
        return cls(
            shapes=tuple(tuple(shape) for shape in data["shapes"]),
            dtypes=tuple(data["dtypes"]),
            outputs=tuple(data["outputs"]),
            bound=data["bound"],
            reduction=data["reduction"],
        )


def seeded_inputs(spec: Signature, seed: int, positive: bool = False) -> list[np.ndarray]:
    """A tensor a parameter; outputs are poisoned, so that what is not written shows.

    Floats are uniform in [-s, s) with s = reduction ** -0.25: the products of a contraction
    then add up to about one, where neither an activation saturates nor half precision
    overflows. positive: in [0, s), for programs that take roots or logarithms of their inputs.
    """
    rng = np.random.default_rng(seed)
    scale = spec.reduction**-0.25
    made = []
    for at, (shape, name) in enumerate(zip(spec.shapes, spec.dtypes, strict=True)):
        dtype = numpy_dtype(name)
        if at in spec.outputs:
            made.append(poisoned(shape, dtype))
        elif dtype == np.bool_ or np.issubdtype(dtype, np.integer):
            high = 2 if dtype == np.bool_ else spec.bound
            made.append(rng.integers(0, high, shape).astype(dtype))
        else:
            values = rng.random(shape, np.float32)
            made.append(((values if positive else 2 * values - 1) * scale).astype(dtype))
    return made


def poisoned(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """NaN, or bytes that no result consists of: an element left unwritten is seen."""
    if dtype == np.bool_ or np.issubdtype(dtype, np.integer):
        raw = np.full((*shape, dtype.itemsize), _POISON, np.uint8)
        return raw.view(dtype).reshape(shape)
    return np.full(shape, np.nan).astype(dtype)


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's type of a TVM type name; ml_dtypes adds bfloat16 and the 8-bit floats."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def to_bytes(arrays: Sequence[np.ndarray]) -> bytes:
    """Arrays in NumPy's format; their types and shapes are the reader's to know."""
    file = io.BytesIO()
    np.savez(file, *(np.frombuffer(one.tobytes(), np.uint8) for one in arrays))
    return file.getvalue()


def from_bytes(data: bytes, kinds: Sequence[tuple[tuple[int, ...], str]]) -> list[np.ndarray]:
    """The arrays of `to_bytes`, given the shape and type of each."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        raw = [file[f"arr_{at}"] for at in range(len(kinds))]
    return [
        one.view(numpy_dtype(dtype)).reshape(shape)
        for one, (shape, dtype) in zip(raw, kinds, strict=True)
    ]
