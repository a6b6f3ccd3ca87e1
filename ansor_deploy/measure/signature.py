"""What a task's function is called with, and what seeded inputs suit it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._tvm import structural_walk, tirx, tvm

_INT_VALUES = 4
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


def signature(mod: Any) -> Signature:
    """Of the function `main` of a task's canonical module."""
    func = mod["main"]
    return Signature(
        shapes=tuple(tuple(int(extent) for extent in p.shape) for p in func.params),
        dtypes=tuple(str(p.dtype) for p in func.params),
        outputs=written(func),
        bound=_index_bound(func),
        reduction=_longest_sum(func),
    )


def written(func: Any) -> tuple[int, ...]:
    """Positions of the parameters that a PrimFunc stores to."""
    stored: set[int] = set()

    def visit(store: Any) -> None:
        stored.update(at for at, p in enumerate(func.params) if p.same_as(store.buffer))

    structural_walk(func.body, (tirx.BufferStore, visit))
    return tuple(sorted(stored))


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


def _index_bound(func: Any) -> int:
    """Integer inputs below this are valid wherever loaded values serve as indices."""
    bounds = [_INT_VALUES]

    def visit(access: Any) -> None:
        source = access.buffer if isinstance(access, tirx.BufferStore) else access.source
        for index, extent in zip(access.indices, source.shape, strict=True):
            if _loads(index):
                bounds.append(int(extent))

    structural_walk(func.body, (tvm.ir.TensorLoad, visit))
    structural_walk(func.body, (tirx.BufferStore, visit))
    return max(1, min(bounds))


def _loads(expr: Any) -> bool:
    found: list[bool] = []
    structural_walk(expr, (tvm.ir.TensorLoad, lambda _: found.append(True)))
    return bool(found)


def _longest_sum(func: Any) -> int:
    lengths = [1]

    def visit(block: Any) -> None:
        length = 1
        for axis in block.iter_vars:
            if axis.iter_type == tirx.IterVar.CommReduce:
                length *= int(axis.dom.extent)
        lengths.append(length)

    structural_walk(func.body, (tvm.s_tir.SBlock, visit))
    return max(lengths)
