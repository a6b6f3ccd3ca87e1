"""A node during its conversion to Relax: the input of our converters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._lazy_tvm import tvm

# Attribute of a program whose loops end where data decide, so that no proof can read them. It names
# the axis of samples in the result. Each sample there depends only on the same one along the first
# axis of the first input, and on the other inputs.
ROWS_APART = "ansor.rows_apart"


@dataclass(frozen=True)
class Call:
    """A node that is converted. inputs: Relax expressions; None for one that is left out.

    opset: of ONNX's own operators. bb: the block builder. theirs: TVM's converter of the operator,
    or None. params: an argument that it takes.
    """

    operator: str
    bb: Any
    inputs: Any
    attributes: dict[str, Any]
    opset: int
    theirs: Any
    params: Any

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value; bytes are decoded to a string."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def input(self, index: int) -> Any:
        """An input; None if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def shape(self, index: int) -> tuple[int, ...]:
        """An input's static shape."""
        return tuple(int(extent) for extent in self.inputs[index].ty.shape)

    def dtype(self, index: int) -> str:
        """An input's element type, such as float32."""
        return str(self.inputs[index].ty.dtype)

    def value(self, index: int) -> np.ndarray | None:
        """An input's value; None if it is not a constant, or left out."""
        given = self.input(index)
        return given.value.numpy() if isinstance(given, tvm.ir.GenericConst) else None

    def emit(self, expression: Any) -> Any:
        """A variable bound to an expression."""
        return self.bb.emit(expression)

    @property
    def results(self) -> int:
        """How many outputs the node names."""
        return int(self.attributes["tvm_custom"]["num_outputs"])

    def by_tvm(self) -> Any:
        """The result of TVM's own converter."""
        convert = self.theirs.get_converter(self.opset)
        return convert(self.bb, self.inputs, self.attributes, self.params)
