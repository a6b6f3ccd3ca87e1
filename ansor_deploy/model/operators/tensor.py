"""A tensor that is rearranged now if it is a constant, else by the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._lazy_tvm import relax
from .converting import Call


@dataclass(frozen=True)
class Tensor:
    """A value in float32: a NumPy array, or a Relax variable of a static shape."""

    call: Call
    value: Any

    @classmethod
    def of(cls, call: Call, index: int) -> Tensor:
        """An input of a node."""
        value = call.value(index)
        if value is not None:
            return cls(call, value.astype(np.float32))
        return cls(call, call.emit(relax.op.astype(call.inputs[index], "float32")))

    @property
    def expression(self) -> Any:
        """The value in Relax."""
        return relax.const(self.value) if self._is_constant else self.value

    @property
    def shape(self) -> tuple[int, ...]:
        """The static shape."""
        of = self.value if self._is_constant else self.value.ty
        return tuple(int(extent) for extent in of.shape)

    def reshaped(self, *shape: int) -> Tensor:
        """The same elements in another shape."""
        if self._is_constant:
            return self._made(np.ascontiguousarray(self.value.reshape(shape)))
        return self._made(relax.op.reshape(self.value, list(shape)))

    def permuted(self, *axes: int) -> Tensor:
        """The axes in another order."""
        if self._is_constant:
            return self._made(np.ascontiguousarray(self.value.transpose(axes)))
        return self._made(relax.op.permute_dims(self.value, list(axes)))

    def padded(self, axis: int, more: int) -> Tensor:
        """The tensor with zeros at the end of an axis."""
        widths = [(0, more if at == axis else 0) for at in range(len(self.shape))]
        if not more:
            return self
        if self._is_constant:
            return self._made(np.pad(self.value, widths))
        flat = [width for pair in widths for width in pair]
        return self._made(relax.op.nn.pad(self.value, flat))

    def part(self, begin: int, end: int) -> Tensor:
        """A range of the first axis."""
        if self._is_constant:
            return self._made(self.value[begin:end])
        return self._made(relax.op.strided_slice(self.value, [0], [begin], [end]))

    def plus(self, other: Tensor) -> Tensor:
        """The sum; both tensors are constants, or neither is."""
        if self._is_constant:
            return self._made(self.value + other.value)
        return self._made(relax.op.add(self.value, other.value))

    def followed_by(self, other: Tensor) -> Tensor:
        """Both along the first axis; both are constants, or neither is."""
        if self._is_constant:
            return self._made(np.concatenate([self.value, other.value]))
        return self._made(relax.op.concat([self.value, other.value], 0))

    @property
    def _is_constant(self) -> bool:
        return isinstance(self.value, np.ndarray)

    def _made(self, value: Any) -> Tensor:
        return Tensor(self.call, value if isinstance(value, np.ndarray) else self.call.emit(value))


def zeros(call: Call, *shape: int) -> Tensor:
    """A constant of zeros."""
    return Tensor(call, np.zeros(shape, np.float32))
