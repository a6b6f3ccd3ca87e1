"""Load and run a built library. Needs tvm_ffi and TVM's runtime library, and no compiler.

>>> model = ansor_deploy.runtime.load("out/resnet50.so")
>>> model(data=x)["prob"]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .interface import Interface, TensorInfo
    from .model import Model, load

__all__ = ["Interface", "Model", "TensorInfo", "load"]
_FILES = {"Interface": "interface", "TensorInfo": "interface"}  # of others, `model`


def __getattr__(name: str) -> Any:
    """One of these names, when it is asked for: what only reads a manifest needs no NumPy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES.get(name, 'model')}"), name)
