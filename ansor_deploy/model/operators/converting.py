"""Our converters in TVM's ONNX front end: what one is given, and errors that name the node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from ..._lazy_tvm import relax, tvm
from .blame import importing
from .operator import OPERATORS, Operator

# The front end has no hook for a converter of one's own: its table is read, and stood in for.
_TABLE = "_get_convert_map"


@dataclass(frozen=True)
class Call:
    """A node that is converted. inputs: Relax expressions, None for one that is left out.

    opset: of ONNX's own operators. bb: the block builder. theirs: TVM's converter of the operator
    or None; params: what it is passed on.
    """

    operator: str
    bb: Any
    inputs: Any
    attributes: dict[str, Any]
    opset: int
    theirs: Any
    params: Any

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value; a string as such."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def input(self, index: int) -> Any:
        """An input, None where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def shape(self, index: int) -> tuple[int, ...]:
        """An input's static shape."""
        return tuple(int(extent) for extent in self.inputs[index].ty.shape)

    def dtype(self, index: int) -> str:
        """An input's element type, such as float32."""
        return str(self.inputs[index].ty.dtype)

    def value(self, index: int) -> np.ndarray | None:
        """An input's value, None where it is no constant or left out."""
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
        """What TVM's own converter makes of it."""
        convert = self.theirs.get_converter(self.opset)
        return convert(self.bb, self.inputs, self.attributes, self.params)


@contextmanager
def own_converters() -> Iterator[None]:
    """Our converters in TVM's table, for the length of an import."""
    from ..._tvm import onnx_frontend

    theirs = getattr(onnx_frontend, _TABLE)()
    table = {
        tvm_name(domain, name): _Converter(operator, theirs.get(name))
        for (domain, name), operator in OPERATORS.items()
    }
    with patch.object(onnx_frontend, _TABLE, lambda: table):
        yield


def tvm_name(domain: str, name: str) -> str:
    """The key in TVM's table, which knows no domains."""
    return f"{domain}.{name}" if domain else name


@dataclass(frozen=True)
class _Converter:
    """An operator as TVM's front end asks for it."""

    operator: Operator
    theirs: Any

    def get_converter(self, opset: int) -> Any:
        """The function that converts a node of a model of this opset."""
        return partial(self._convert, opset)

    def _convert(self, opset: int, bb: Any, inputs: Any, attributes: Any, params: Any) -> Any:
        name = self.operator.name
        call = Call(name, bb, inputs, attributes, opset, self.theirs, params)
        convert = self.operator.convert or Call.by_tvm
        with importing(name, attributes["tvm_custom"]["name"]):
            # Here, not by the front end: it would not say which node's types do not fit.
            return _normal(bb, convert(call))


def _normal(bb: Any, result: Any) -> Any:
    return bb.normalize(result) if isinstance(result, relax.Expr) else result
