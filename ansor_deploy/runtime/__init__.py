"""Load and run a built library. Needs tvm_ffi and TVM's runtime library, and no compiler.

>>> model = ansor_deploy.runtime.load("out/resnet50.so")
>>> model(data=x)["prob"]
"""

from .model import Interface, Model, TensorInfo, load

__all__ = ["Interface", "Model", "TensorInfo", "load"]
