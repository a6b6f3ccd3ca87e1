"""How much of a model's constants may be computed at its import: folding is no way to fill memory.

28 Concats of a tensor with itself make 2 GiB of eight numbers. What is computed may be some times
what the model's file has, as where weights of four bits become floats, and there is room for masks
and tables of positions beside that.
"""

from collections.abc import Collection, Iterable

from onnx import TensorProto

from ...errors import ModelError
from ..onnx.tensor_data import byte_size

_ROOM = 128 << 20  # bytes that any model may compute
_GROWTH = 8  # times the bytes of its own
MOST_FILLED = 640 << 20  # bytes that its ConstantOfShape may make: some exporters write weights so


class Room:
    """The bytes that constants of a graph take which its model's file did not have."""

    def __init__(self, own: Iterable[TensorProto]) -> None:
        """own: the tensors of the model's file."""
        self._own = sum(byte_size(tensor) or 0 for tensor in own)
        self._filled = 0
        self._taken: dict[str, int] = {}
        self._sum = 0

    def fill(self, node: str, size: int) -> None:
        """Let a ConstantOfShape make weights; ModelError where the model makes too many so."""
        if self._filled + size > MOST_FILLED:
            fault = f"its ConstantOfShape operators make more than {MOST_FILLED >> 20} MiB"
            hint = "Export the model with its weights as initializers."
            raise ModelError(f"node '{node}': {fault} of constants", hint)
        self._filled += size

    def check(self, node: str, size: float) -> None:
        """ModelError where a node would make more constants, in bytes, than there is room for."""
        most = _ROOM + _GROWTH * self._own + self._filled
        if self._sum + size > most:
            fault = f"more than {most >> 20} MiB would be computed of the model's constants alone"
            hint = "Simplify the model (onnxslim model.onnx simple.onnx), or make them its inputs."
            raise ModelError(f"node '{node}': {fault}", hint)

    def take(self, name: str, size: int) -> None:
        """Note the bytes of a constant that was computed; ModelError where they are too many."""
        self.check(name, size)
        self._taken[name] = size
        self._sum += size

    def has(self, name: str) -> bool:
        """Whether a constant is one that was computed."""
        return name in self._taken

    def free(self, name: str) -> None:
        """Forget a constant, which is no longer held."""
        self._sum -= self._taken.pop(name, 0)

    def keep_only(self, names: Collection[str]) -> None:
        """Forget the constants that are no longer among these."""
        for name in [name for name in self._taken if name not in names]:
            self.free(name)
