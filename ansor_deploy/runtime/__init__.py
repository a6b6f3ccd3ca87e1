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
_FILES = {"Interface": "interface", "TensorInfo": "interface"}  # all others are in `model`


def __getattr__(name: str) -> Any:
    """Import one of these names at first use, since programs that read manifests need no NumPy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES.get(name, 'model')}"), name)
