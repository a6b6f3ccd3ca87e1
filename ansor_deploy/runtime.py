"""Load and run a built library. Needs tvm_ffi and TVM's runtime library, and no compiler.

    >>> model = ansor_deploy.runtime.load("out/resnet50.so")
    >>> model(data=x)["prob"]

The package `tvm` is never imported, but only its library libtvm_runtime.so loaded: beside a
compiler that is imported already, or is later, that is the same library, and not a second one.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .artifact.files import read_manifest
from .errors import AnsorError, DeviceError, UsageError
from .measure.tensors import numpy_dtype

_CPU, _POOLED = 1, 2  # DLPack's device type; the VM's allocator that keeps its memory
_LIBRARY = "libtvm_runtime.so"


@dataclass(frozen=True)
class TensorInfo:
    """An input or output by its ONNX name."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class Model:
    """A loaded library: call it with the inputs by name, get the outputs by name.

    threads: that a call takes; 0 for as many as the target has cores.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], threads: int = 0) -> None:
        self.path = path
        self.manifest = manifest
        self.inputs, self.outputs = interface(manifest)
        self._main = _open(path, threads or int(manifest["target"]["cores"]))

    def __call__(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Run once. Arrays must have the shapes and dtypes of `inputs`; UsageError if not."""
        check_inputs(self.path, self.inputs, inputs)
        result = self._main(*(tensor(inputs[info.name]) for info in self.inputs))
        results = [result] if isinstance(result, ffi().Tensor) else list(result)
        return {info.name: array(value) for info, value in zip(self.outputs, results, strict=True)}

    def times(self, inputs: dict[str, np.ndarray], runs: int) -> list[float]:
        """Seconds of each of so many runs, inputs and outputs copied, by the wall clock."""
        seconds = []
        for _ in range(runs):
            began = time.perf_counter()
            self(**inputs)
            seconds.append(time.perf_counter() - began)
        return seconds


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


def interface(manifest: dict[str, Any]) -> tuple[list[TensorInfo], list[TensorInfo]]:
    """(inputs, outputs) as a manifest tells them, in the order of the library's arguments."""
    inputs, outputs = ([_info(one) for one in manifest[key]] for key in ("inputs", "outputs"))
    return inputs, outputs


def check_inputs(path: Path, wanted: Sequence[TensorInfo], inputs: dict[str, np.ndarray]) -> None:
    """UsageError naming every input that is missing, unknown, or of the wrong type."""
    names = {info.name for info in wanted}
    faults = [f"{name}: no such input" for name in inputs if name not in names]
    for info in wanted:
        given = inputs.get(info.name)
        if given is None:
            faults.append(f"{info.name}: missing")
        elif given.shape != info.shape or str(given.dtype) != info.dtype:
            faults.append(f"{info.name}: {given.dtype}{list(given.shape)} given")
    if faults:
        takes = ", ".join(f"{i.name}: {i.dtype}{list(i.shape)}" for i in wanted)
        raise UsageError(f"inputs of {path} do not fit: {'; '.join(faults)}", f"it takes {takes}")


@lru_cache(maxsize=1)
def ffi() -> Any:
    """The module tvm_ffi, the runtime's functions among its global ones."""
    import tvm_ffi

    if tvm_ffi.get_global_func("runtime.config_threadpool", allow_missing=True) is None:
        ctypes.CDLL(str(library()), ctypes.RTLD_GLOBAL)
    return tvm_ffi


def use_cores(count: int) -> None:
    """Let kernels take so many of the processors that this process may use.

    TVM by itself takes half of the processors of an x86 machine, for hyper-threads, and pins each
    thread of its pool to one of them, where it starves beside other work: the caller's, which no
    thread is pinned for. Here the threads share the processors.
    """
    allowed = sorted(os.sched_getaffinity(0))
    width = max(1, min(count, len(allowed)))
    os.environ["TVM_NUM_THREADS"] = str(width)
    shared = -3  # mode "kSpecifyThreadShareAllCore" of TVM's threading_backend.h
    processors = [str(cpu) for cpu in allowed[:width]]
    ffi().get_global_func("runtime.config_threadpool")(shared, width, processors)


def library() -> Path:
    """Where TVM's runtime library lies: in the package `tvm`, which is found, not imported."""
    spec = find_spec("tvm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder, "lib", _LIBRARY)).is_file():
            return path
    raise AnsorError(
        f"TVM's runtime ({_LIBRARY}) is not installed for this Python",
        "run: pip install 'apache-tvm==0.27.0.post1'",
    )


def load_module(path: str | Path) -> Any:
    """A shared library that TVM made; OSError or RuntimeError where it cannot be loaded.

    It stays in the process: what it returned may outlive the last reference to it.
    """
    return ffi().load_module(os.path.realpath(path))


def tensor(values: np.ndarray) -> Any:
    """A tensor in memory that is aligned as kernels expect it, with a copy of the values."""
    made = empty(values.shape, str(values.dtype))
    fill(made, values)
    return made


def empty(shape: Sequence[int], dtype: str) -> Any:
    """A tensor whose elements have any value."""
    lib = ffi()
    alloc = lib.get_global_func("runtime.TVMTensorAllocWithScope")
    return alloc(lib.Shape([int(n) for n in shape]), lib.dtype(dtype), lib.device("cpu", 0), None)


def view(memory: np.ndarray, shape: Sequence[int], dtype: str) -> Any:
    """A tensor in the memory of an array of bytes."""
    lib = ffi()
    make = lib.get_global_func("runtime.TVMTensorCreateView")
    return make(lib.from_dlpack(memory), lib.Shape([int(n) for n in shape]), lib.dtype(dtype), 0)


def fill(target: Any, values: np.ndarray) -> None:
    """Copy an array of the tensor's shape and type into it."""
    flat = np.ascontiguousarray(values)
    copy = ffi().get_global_func("runtime.TVMTensorCopyFromBytes")
    copy(target, flat.ctypes.data_as(ctypes.c_void_p), flat.nbytes)


def array(source: Any) -> np.ndarray:
    """A copy of a tensor."""
    made = np.empty(tuple(source.shape), numpy_dtype(str(source.dtype)))
    copy = ffi().get_global_func("runtime.TVMTensorCopyToBytes")
    copy(source, made.ctypes.data_as(ctypes.c_void_p), made.nbytes)
    return made


def times(
    module: Any, function: str, arguments: Sequence[Any], number: int, repeat: int
) -> list[float]:
    """Seconds a call, averaged over `number` calls, `repeat` times; one call before is not timed.

    The runtime's own loop and clock: no Python between the calls.
    """
    make = ffi().get_global_func("runtime.RPCTimeEvaluator")
    # Whatever it offers beyond that is off: no least duration, no pauses, no flushed caches.
    timer = make(module, function, _CPU, 0, number, repeat, 0, 100, 0, 1, 0, "")
    return list(struct.unpack(f"@{repeat}d", timer(*arguments)))


def _info(entry: dict[str, Any]) -> TensorInfo:
    return TensorInfo(entry["name"], tuple(entry["shape"]), entry["dtype"])


def _open(path: Path, cores: int) -> Any:
    """The main function of a library. The pool is as wide as the target has cores."""
    use_cores(cores)
    try:
        machine = load_module(path)["vm_load_executable"]()
        machine["vm_initialization"](_CPU, 0, _POOLED)
    except (OSError, RuntimeError, AttributeError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise AnsorError(
            f"cannot be loaded: {reason}",
            "it may be built for another machine: see `target` in its manifest",
            path,
        ) from error
    return machine["main"]
