"""A limit on the constants that a model's import computes, so that folding cannot fill memory.

28 Concats of a tensor with itself make 2 GiB of eight numbers. The computed constants may take a
multiple of the bytes in the model's file, as where 4-bit weights become floats, and a fixed room
beside that, for masks and tables of positions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from onnx import TensorProto

from ...errors import ModelError
from ..onnx.tensor_data import byte_size

_ROOM = 128 << 20  # bytes that the constants of any model may take
_GROWTH = 8  # how many times its file's bytes they may take beside that
MOST_FILLED = 640 << 20  # bytes that ConstantOfShape may make: some exporters write weights so


class Room:
    """The bytes of a graph's constants that were computed, and so were not in its model's file."""

    def __init__(self, own: Iterable[TensorProto]) -> None:
        """own: the tensors of the model's file."""
        self._own = sum(byte_size(tensor) or 0 for tensor in own)
        self._filled = 0
        self._taken: dict[str, int] = {}
        self._sum = 0

    def empty(self) -> Room:
        """The room of the same file, with nothing in it."""
        made = Room(())
        made._own = self._own
        return made

    def fill(self, node: str, size: int) -> None:
        """Count what a ConstantOfShape makes; ModelError if they make too many bytes."""
        if self._filled + size > MOST_FILLED:
            fault = f"its ConstantOfShape operators make more than {MOST_FILLED >> 20} MiB"
            hint = "Export the model with its weights as initializers."
            raise ModelError(f"node '{node}': {fault} of constants", hint)
        self._filled += size

    def check(self, node: str, size: float) -> None:
        """ModelError if there is no room for the constants, in bytes, that a node would make."""
        most = _ROOM + _GROWTH * self._own + self._filled
        if self._sum + size > most:
            fault = f"more than {most >> 20} MiB would be computed of the model's constants alone"
            hint = "Simplify the model (onnxslim model.onnx simple.onnx), or make them its inputs."
            raise ModelError(f"node '{node}': {fault}", hint)

    def take(self, name: str, size: int) -> None:
        """Count the bytes of a computed constant; ModelError if there is no room for them."""
        self.check(name, size)
        self._taken[name] = size
        self._sum += size

    def has(self, name: str) -> bool:
        """Whether a constant was computed."""
        return name in self._taken

    def free(self, name: str) -> None:
        """Stop counting a constant, which is no longer held."""
        self._sum -= self._taken.pop(name, 0)

    def keep_only(self, names: Collection[str]) -> None:
        """Stop counting the constants that are not among these."""
        for name in [name for name in self._taken if name not in names]:
            self.free(name)
