"""The interface of a library: its inputs and outputs by name, in each of its shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .batches import Batches
from .context import Context
from .fit import text
from .lengths import Lengths
from .tensors import counted


@dataclass(frozen=True)
class TensorInfo:
    """An input or output by its ONNX name.

    lengths: where a run decides how much of an output counts, pairs of an axis and the output that
    holds the length along it; the shape is the room then.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    lengths: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Interface:
    """The inputs and outputs of a library in one of its shapes, in the order of its arguments.

    context: what it keeps from one step to the next; None where that is nothing.
    """

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    context: Context | None = None

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """The inputs' shapes by their names."""
        return {info.name: info.shape for info in self.inputs}

    @property
    def takes(self) -> str:
        """The inputs as text, such as "x: float32[1, 3, 8, 8], y: int64[1]"."""
        return text(self.inputs)

    @property
    def gives(self) -> str:
        """The outputs as text."""
        return text(self.outputs)

    def to_json(self) -> dict[str, Any]:
        """The interface as it is in a manifest."""
        tensors = {"inputs": self.inputs, "outputs": self.outputs}
        kept = {"context": self.context.to_json()} if self.context else {}
        return {**{kind: [*map(_entry, some)] for kind, some in tensors.items()}, **kept}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Interface:
        """The interface of a manifest, or of one of its shapes."""
        return cls(tuple(map(_tensor, data["inputs"])), tuple(map(_tensor, data["outputs"])))


_OF_CALLS = [
    "inputs",
    "outputs",
    "target",
    "variants",
    "context",
    "batch",
    "ranges",
    "codes",
    "preset",
]


def of_calls(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a manifest that are needed to call a library."""
    return {key: manifest.get(key) for key in _OF_CALLS}


def _entry(info: TensorInfo) -> dict[str, Any]:
    entry = {"name": info.name, "shape": list(info.shape), "dtype": info.dtype}
    lengths = {"lengths": [list(pair) for pair in info.lengths]} if info.lengths else {}
    return {**entry, **lengths}


def interfaces(manifest: dict[str, Any]) -> list[Interface]:
    """The interfaces of a library, for each of its shapes, from its manifest.

    With a context, or a range of lengths, they are those of the model itself at some lengths.
    """
    known = declared(manifest)
    if context := known[0].context:
        return [context.grown(known[0], length) for length in context.samples]
    found = ranges(manifest, known)
    return found.interfaces if found else known


def ranges(manifest: Mapping[str, Any], called: Sequence[Interface]) -> Batches | Lengths | None:
    """The batches, or the lengths, that a library takes; None where all its sizes are fixed.

    called: the interfaces of its functions.
    """
    if said := manifest.get("ranges"):
        return Lengths(said, called)
    said = manifest.get("batch")
    return Batches(said, called) if said else None


def declared(manifest: dict[str, Any]) -> list[Interface]:
    """The interfaces of a library's functions, from its manifest."""
    context = Context.from_json(manifest["context"]) if manifest.get("context") else None
    every = manifest.get("variants") or [manifest]
    return [replace(Interface.from_json(one), context=context) for one in every]


def _tensor(entry: dict[str, Any]) -> TensorInfo:
    lengths = tuple((axis, name) for axis, name in entry.get("lengths", ()))
    return TensorInfo(entry["name"], tuple(entry["shape"]), entry["dtype"], lengths)


def of_true_size(
    gives: Sequence[TensorInfo], outputs: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The model's outputs, cut to the part that counts. outputs: all of a library's, in order."""
    if not any(info.lengths for info in gives):
        return dict(outputs)
    inner = {name for info in gives for _, name in info.lengths}
    return {info.name: _cut(info, outputs) for info in gives if info.name not in inner}


def _cut(info: TensorInfo, outputs: Mapping[str, np.ndarray]) -> np.ndarray:
    whole = outputs[info.name]
    return np.ascontiguousarray(counted(info, outputs)) if info.lengths else whole
