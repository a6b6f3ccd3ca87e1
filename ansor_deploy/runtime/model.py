"""A built library, loaded and called with arrays by name."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..artifact.files import read_manifest
from ..errors import AnsorError, DeviceError, UsageError
from ..system.host import architecture
from .native import array, ffi, load_module, mapped, tensor, use_cores

_CPU, _POOLED = 1, 2  # DLPack's device type; the VM's allocator that keeps its memory


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
        use_cores(threads or int(manifest["target"]["cores"]))
        self._main = main_function(path)

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
    if architecture(triple := manifest["target"]["triple"]) != architecture():
        raise DeviceError(
            f"{path} is built for {triple}, and this machine is {architecture()}",
            "copy it and its manifest to a machine of that kind and run it there",
        )
    return Model(path, manifest)


def interface(manifest: dict[str, Any]) -> tuple[list[TensorInfo], list[TensorInfo]]:
    """(inputs, outputs) as a manifest lists them, in the order of the library's arguments."""
    inputs, outputs = (
        [TensorInfo(one["name"], tuple(one["shape"]), one["dtype"]) for one in manifest[key]]
        for key in ("inputs", "outputs")
    )
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


def main_function(path: Path) -> Any:
    """The main function of a library, its weights mapped; AnsorError if it cannot be loaded."""
    try:
        machine = load_module(path)["vm_load_executable"]()
        machine["vm_initialization"](_CPU, 0, _POOLED)
        bind_weights(machine, partial(mapped, path))
        return machine["main"]
    except (OSError, RuntimeError, AttributeError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise AnsorError(
            f"cannot be loaded: {reason}",
            "it may be built for another machine: see `target` in its manifest",
            path,
        ) from error


def bind_weights(machine: Any, block: Callable[[int], Any]) -> None:
    """Give a virtual machine's function its weights (`codegen/weights.py`).

    block: makes a tensor, uint8, of the block of so many bytes. A library of version 0.1.0 has its
    weights in its code, and needs none.
    """
    if machine.implements_function("weights_size") and (size := machine["weights_size"]()):
        views = machine["main_weights"](block(size))
        machine["save_function"]("main", "main", True, *views)
