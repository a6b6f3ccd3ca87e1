"""The types and conventions of ONNX Runtime's `InferenceSession`, for programs written for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UsageError

if TYPE_CHECKING:
    from .interface import TensorInfo

_ONNX_TYPES = {"float32": "float", "float64": "double"}


@dataclass(frozen=True)
class NodeArg:
    """An input or output as ONNX Runtime describes it, with a type such as "tensor(float)"."""

    name: str
    type: str
    shape: list[int]

    @classmethod
    def of(cls, info: TensorInfo) -> NodeArg:
        """The `NodeArg` of a library's input or output."""
        return cls(info.name, f"tensor({_ONNX_TYPES.get(info.dtype, info.dtype)})", [*info.shape])


def fed(takes: Sequence[TensorInfo], input_feed: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a call, with lists turned into arrays, and one element into a scalar.

    UsageError where a list does not fit the input's type.
    """
    known = {info.name: info for info in takes}
    return {
        name: _array(known[name], given) if name in known else given
        for name, given in input_feed.items()
    }


def _array(info: TensorInfo, given: Any) -> Any:
    if isinstance(given, list):
        given = _of_list(info, given)
    one = isinstance(given, np.ndarray) and given.size == 1 and info.shape == ()
    return given.reshape(()) if one else given


def _of_list(info: TensorInfo, given: list[Any]) -> np.ndarray:
    """A list as an array of the input's type; fractions are not accepted as integers."""
    try:
        made = np.array(given)
        if made.dtype.kind == "f":
            return made.astype(info.dtype, casting="same_kind")
        return np.array(given, info.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        hint = "give a NumPy array of that type"
        raise UsageError(f"{info.name}: a list that is no {info.dtype}: {error}", hint) from error


def wanted(output_names: Sequence[str] | None, gives: Sequence[str]) -> Sequence[str]:
    """The names of the wanted outputs: all where none are named.

    UsageError where there is no such output.
    """
    if isinstance(output_names, str):
        raise UsageError(f"{output_names!r} is no list of outputs", f"write [{output_names!r}]")
    names = list(output_names or gives)
    if unknown := [name for name in names if name not in gives]:
        said = ", ".join(map(str, unknown))
        raise UsageError(f"no such output: {said}", f"it gives {', '.join(gives)}")
    return names
