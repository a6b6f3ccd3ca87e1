"""Our converters in TVM's ONNX front end, and errors that name the node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..._lazy_tvm import relax
from .blame import importing
from .converting import Call
from .operator import Operator
from .table import OPERATORS

# The front end has no hook for additional converters, so its table is read and replaced.
_TABLE = "_get_convert_map"


@contextmanager
def own_converters() -> Iterator[None]:
    """Put our converters into TVM's table during an import."""
    from ..._tvm import onnx_frontend, replaced

    theirs = getattr(onnx_frontend, _TABLE)()
    table = {
        tvm_name(domain, name): _Converter(operator, theirs.get(name))
        for (domain, name), operator in OPERATORS.items()
    }
    with replaced(onnx_frontend, _TABLE, lambda: table):
        yield


def tvm_name(domain: str, name: str) -> str:
    """The key of an operator in TVM's table, which has no domains."""
    return f"{domain}.{name}" if domain else name


@dataclass(frozen=True)
class _Converter:
    """An operator in the form that TVM's front end expects."""

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
            # Normalised here, since the front end would not say which node's types do not fit.
            return _normal(bb, convert(call))


def _normal(bb: Any, result: Any) -> Any:
    return bb.normalize(result) if isinstance(result, relax.Expr) else result
