"""Use tensors of other libraries, such as PyTorch's, as arrays in their own memory."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import UsageError

_CUDA = 2  # DLPack's device type
Arrays = Mapping[str, Any]  # by name: NumPy's, or others that exchange their memory by DLPack


def in_place(given: Arrays, on_gpu: Callable[[Any], Any] | None = None) -> dict[str, Any]:
    """The arrays, each in its own memory; UsageError where that is not the CPU's.

    on_gpu: converts a tensor in a GPU's memory to an argument of functions; None where these take
    no such tensors.
    """
    return {name: _array(name, one, on_gpu) for name, one in given.items()}


def _array(name: str, given: Any, on_gpu: Callable[[Any], Any] | None) -> Any:
    if isinstance(given, (np.ndarray, np.generic)):
        return np.asarray(given)
    if not hasattr(given, "__dlpack__"):
        hint = "give a NumPy array, or a tensor that exchanges its memory by DLPack"
        raise UsageError(f"{name}: a {type(given).__name__}, and no array", hint)
    try:
        if on_gpu and given.__dlpack_device__()[0] == _CUDA:
            return on_gpu(given)
        lent = np.from_dlpack(given)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(
            f"{name}: a {type(given).__name__} that cannot be read where it lies: {error}",
            "give a tensor in the processor's memory, of a type that NumPy has: x.detach().cpu()",
        ) from error
    return lent if lent.flags.writeable else np.asarray(_Lent(lent))


class _Lent:
    """The memory of an array as writable memory: DLPack before 1.0 cannot say that it is."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        known = array.__array_interface__
        self.__array_interface__ = {**known, "data": (known["data"][0], False)}
