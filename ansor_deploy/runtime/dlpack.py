"""Tensors of other libraries, such as PyTorch's, as arrays in the memory where they lie."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import UsageError

Arrays = Mapping[str, Any]  # by name: NumPy's, or whatever else exchanges its memory by DLPack


def in_place(given: Arrays) -> dict[str, np.ndarray]:
    """The arrays, each in its own memory; UsageError where that is not the processor's."""
    return {name: _array(name, one) for name, one in given.items()}


def _array(name: str, given: Any) -> np.ndarray:
    if isinstance(given, (np.ndarray, np.generic)):
        return np.asarray(given)
    if not hasattr(given, "__dlpack__"):
        hint = "give a NumPy array, or a tensor that exchanges its memory by DLPack"
        raise UsageError(f"{name}: a {type(given).__name__}, and no array", hint)
    try:
        lent = np.from_dlpack(given)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(
            f"{name}: a {type(given).__name__} that cannot be read where it lies: {error}",
            "give a tensor in the processor's memory, of a type that NumPy has: x.detach().cpu()",
        ) from error
    return lent if lent.flags.writeable else np.asarray(_Lent(lent))


class _Lent:
    """The memory of an array, to be written to: DLPack before 1.0 said of none that it may be."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        known = array.__array_interface__
        self.__array_interface__ = {**known, "data": (known["data"][0], False)}
