"""Load and run a built library. Imports TVM's runtime and no compiler.

    >>> model = ansor_deploy.runtime.load("out/resnet50.so")
    >>> model(data=x)["prob"]

With `TVM_USE_RUNTIME_LIB=1` in the environment not even the compiler's library is loaded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .artifact import read_manifest
from .errors import AnsorError, DeviceError, UsageError


@dataclass(frozen=True)
class TensorInfo:
    """An input or output by its ONNX name."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class Model:
    """A loaded library: call it with the inputs by name, get the outputs by name."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.inputs = [_info(entry) for entry in manifest["inputs"]]
        self.outputs = [_info(entry) for entry in manifest["outputs"]]
        self._tensor, self._main = _open(path, int(manifest["target"]["cores"]))

    def __call__(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Run once. Arrays must have the shapes and dtypes of `inputs`; UsageError if not."""
        self.check(inputs)
        arguments = [self._tensor(inputs[info.name]) for info in self.inputs]
        result = self._main(*arguments)
        results = [result] if len(self.outputs) == 1 and hasattr(result, "numpy") else list(result)
        return {info.name: value.numpy() for info, value in zip(self.outputs, results, strict=True)}

    def check(self, inputs: dict[str, np.ndarray]) -> None:
        """UsageError naming every input that is missing, unknown, or of the wrong type."""
        wanted = {info.name: info for info in self.inputs}
        faults = [f"{name}: no such input" for name in inputs if name not in wanted]
        for name, info in wanted.items():
            given = inputs.get(name)
            if given is None:
                faults.append(f"{name}: missing")
            elif given.shape != info.shape or str(given.dtype) != info.dtype:
                faults.append(f"{name}: {given.dtype}{list(given.shape)} given")
        if faults:
            takes = ", ".join(f"{i.name}: {i.dtype}{list(i.shape)}" for i in self.inputs)
            raise UsageError(
                f"inputs of {self.path} do not fit: {'; '.join(faults)}", f"it takes {takes}"
            )


def load(path: str | Path) -> Model:
    """Load a library with the manifest beside it; AnsorError if either is missing or damaged.

    DeviceError if it was built for another architecture than this machine's.
    """
    path = Path(path)
    manifest = read_manifest(path)
    _check_architecture(path, manifest["target"]["triple"])
    return Model(path, manifest)


def _check_architecture(path: Path, triple: str) -> None:
    from .host import architecture

    if architecture(triple) != architecture():
        raise DeviceError(
            f"{path} is built for {triple}, and this machine is {architecture()}",
            "copy it and its manifest to a machine of that kind and run it there",
        )


def _info(entry: dict[str, Any]) -> TensorInfo:
    return TensorInfo(entry["name"], tuple(entry["shape"]), entry["dtype"])


def _open(path: Path, cores: int) -> tuple[Any, Any]:
    """(array to tensor, main function). The pool is as wide as the target has cores.

    TVM by itself takes half of the processors of an x86 machine for hyper-threads.
    """
    width = max(1, min(cores, len(os.sched_getaffinity(0))))
    os.environ["TVM_NUM_THREADS"] = str(width)
    import tvm.runtime
    from tvm.runtime.vm import VirtualMachine

    processors = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:width]]
    # -3: the threads share these processors; pinning one each starves them beside other work.
    tvm.get_global_func("runtime.config_threadpool")(-3, width, processors)
    try:
        machine = VirtualMachine(tvm.runtime.load_module(str(path)), tvm.runtime.cpu())
    except (OSError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise AnsorError(
            f"{path}: cannot be loaded: {reason}",
            "it may be built for another machine: see `target` in its manifest",
        ) from error
    return tvm.runtime.tensor, machine["main"]
