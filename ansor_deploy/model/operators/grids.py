"""AffineGrid: the places of an image's elements in another image, by a matrix for each sample.

    y[n, h, w] = theta[n] @ (w, h, 1)         of coordinates from -1 to 1

ONNX's own definition drops the batch axis if the batch is one, and then contradicts itself.
"""

from __future__ import annotations

import numpy as np

from .emitter import Emitter
from .operator import REAL, Operator


def affine_grid(emit: Emitter) -> str | None:
    """A product of the matrices with the coordinates, which are constant."""
    size = emit.graph.value(emit.input(1))
    if size is None:
        return None
    batch, _, *extents = (int(one) for one in size)
    rank = len(extents)
    if emit.shape(emit.input(0)) != (batch, rank, rank + 1):
        raise emit.refuse(f"its matrices are not {batch} of {rank} x {rank + 1}")
    emit.room_for(rank + 1, *extents)
    known = _places(extents, emit.attribute("align_corners", 0))
    places = emit.constant(known, emit.dtype(emit.input(0)))
    turned = emit("Transpose", emit.input(0), perm=[0, 2, 1])
    return emit.reshape(emit("MatMul", places, turned), batch, *extents, rank)


def _places(extents: list[int], aligned: int) -> np.ndarray:
    """The coordinates of each element, last axis first, followed by a one."""
    # Backwards, since ONNX Runtime gives the single element of an axis the coordinate 1.
    along = [np.linspace(1, -1, n)[::-1] if aligned else _middles(n) for n in extents]
    axes = np.meshgrid(*along, indexing="ij")[::-1]
    return np.stack([*axes, np.ones(extents)], axis=-1).reshape(-1, len(extents) + 1)


def _middles(extent: int) -> np.ndarray:
    return (2 * np.arange(extent) + 1) / extent - 1


OPERATORS = (
    Operator("AffineGrid", since=20, types=(*REAL, "int64"), constant=(1,), expand=affine_grid),
)
