"""ansor-deploy: from an ONNX model to a tuned, verified, deployable library.

Importing this package loads nothing heavy: TVM enters only through `ansor_deploy._tvm`.
"""

__version__ = "0.2.0"
