"""Every ONNX operator that can be compiled: `OPERATORS`, an entry each, made without TVM.

A file of this folder is a family. It declares its operators in one of three ways, next to their
limits, and nothing else need know of them (`operator.py`):

    importable(9, "Erf", "Where")            TVM's converter does it, from this opset on
    @converter("Celu", since=12)             a function from a `Call` to a Relax expression
    @rewrite("Scan", since=9)                a function from a node to other nodes, ONNX to ONNX

`support.py` refuses what is not here, or goes beyond a limit. `docs/operators.md` is made from it.
"""

from importlib import import_module
from pkgutil import iter_modules

from .operator import OPERATORS, Operator

for _file in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_file}")

__all__ = ["OPERATORS", "Operator"]
