"""Check whether arrays fit a library's interface, and say what is wrong where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UsageError
from .tensors import numpy_dtype

if TYPE_CHECKING:
    from .batches import Batches
    from .interface import Interface, TensorInfo
    from .lengths import Lengths


def choose(
    path: Path,
    known: Sequence[Interface],
    inputs: Mapping[str, np.ndarray],
    ranges: Batches | Lengths | None = None,
) -> int:
    """The position of the interface that inputs fit; UsageError that names every wrong input.

    ranges: the batches, or lengths, that the library takes as well.
    """
    for at, one in enumerate(known):
        if len(inputs) == len(one.inputs) and all(_fits(info, inputs) for info in one.inputs):
            return at
    what = "; ".join(_faults(known[0].inputs, inputs)) if len(known) == 1 else _given(inputs)
    takes = ranges.takes if ranges else "; or ".join(interface.takes for interface in known)
    raise UsageError(f"inputs of {path} do not fit: {what}", f"it takes {takes}")


def fitting(
    path: Path,
    known: Sequence[Interface],
    inputs: Mapping[str, np.ndarray],
    ranges: Batches | Lengths | None,
) -> Interface:
    """The interface that inputs fit, ranges included; UsageError as in `choose`."""
    within = ranges.of(inputs) if ranges else None
    known = [within] if within else known
    return known[choose(path, known, inputs, ranges)]


def text(tensors: Sequence[TensorInfo]) -> str:
    """Tensors as text for a message."""
    return ", ".join(f"{info.name}: {info.dtype}[{_extents(info)}]" for info in tensors)


def _extents(info: TensorInfo) -> str:
    opened = dict(info.lengths)
    return ", ".join(f"0..{n}" if axis in opened else str(n) for axis, n in enumerate(info.shape))


def check_outputs(
    path: Path, wanted: Sequence[TensorInfo], outputs: Mapping[str, np.ndarray]
) -> None:
    """UsageError that names each array to which an output cannot be written."""
    faults = _faults(wanted, outputs, "output")
    for (name, one), (other, second) in combinations(outputs.items(), 2):
        if _may_share_memory(one, second):
            faults.append(f"{name} and {other}: they share memory")
    for name, one in outputs.items():
        if isinstance(one, np.ndarray) and not one.flags.carray:
            faults.append(f"{name}: not contiguous, not aligned, or not to be written to")
    if faults:
        gives = text(wanted)
        raise UsageError(f"outputs of {path} do not fit: {'; '.join(faults)}", f"it gives {gives}")


def apart(given: np.ndarray, outputs: Iterable[np.ndarray]) -> np.ndarray:
    """An input, copied if it shares memory with an output; a GPU's is always copied by the run."""
    return given.copy() if any(_may_share_memory(given, one) for one in outputs) else given


def _may_share_memory(one: Any, other: Any) -> bool:
    here = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return here and np.may_share_memory(one, other)


def _given(inputs: Mapping[str, np.ndarray]) -> str:
    texts = (f"{name}: {given.dtype}{list(given.shape)}" for name, given in inputs.items())
    return f"{', '.join(texts) or 'none'} given"


def _fits(info: TensorInfo, arrays: Mapping[str, np.ndarray]) -> bool:
    given = arrays.get(info.name)
    return given is not None and (given.shape, given.dtype) == (info.shape, numpy_dtype(info.dtype))


def _faults(
    wanted: Sequence[TensorInfo], arrays: Mapping[str, np.ndarray], kind: str = "input"
) -> list[str]:
    """Every array that is missing, unknown, or of the wrong type or shape."""
    faults = []
    for info in wanted:
        if (given := arrays.get(info.name)) is None:
            faults.append(f"{info.name}: missing")
        elif not _fits(info, arrays):
            faults.append(f"{info.name}: {given.dtype}{list(given.shape)} given")
    if faults or len(arrays) > len(wanted):
        names = {info.name for info in wanted}
        faults[:0] = [f"{name}: no such {kind}" for name in arrays if name not in names]
    return faults
