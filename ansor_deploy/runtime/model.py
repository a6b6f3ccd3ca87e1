"""A built library, loaded and called with arrays by name."""

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..artifact.files import read_manifest
from ..errors import AnsorError, DeviceError, UsageError
from ..system.host import architecture
from ..system.machine_fault import heed
from .native import array, ffi, load_module, mapped, tensor, use_threads

# How a library says that an index is out of range (`model/operators/indices.py`).
OUT_OF_RANGE = re.compile(r"\w+: [a-z ]+ is not in -?\d+ \.\. -?\d+.*$")
RANGE_HINT = "give only indices within the range that the operator named above takes"

_CPU, _POOLED = 1, 2  # DLPack's device type; the VM's allocator that keeps its memory


@dataclass(frozen=True)
class TensorInfo:
    """An input or output by its ONNX name."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Interface:
    """What a library takes and gives, in the order of its arguments, in one of its shapes."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    def to_json(self) -> dict[str, Any]:
        """As it stands in a manifest."""
        return {
            kind: [{**asdict(info), "shape": list(info.shape)} for info in tensors]
            for kind, tensors in vars(self).items()
        }


class Model:
    """A loaded library: call it with the inputs by name, get the outputs by name.

    Threads may share it: one runs, the others wait.

    interfaces: what it takes and gives; several where it was built for several shapes. inputs,
    outputs: of the first. threads: that a call takes; 0 for as many as the target has cores.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], threads: int = 0) -> None:
        self.path = path
        self.manifest = manifest
        self.interfaces = interfaces(manifest)
        self.inputs, self.outputs = self.interfaces[0].inputs, self.interfaces[0].outputs
        threads = threads or int(manifest["target"]["cores"])
        self._functions = main_functions(path, len(self.interfaces), threads)
        self._running = threading.Lock()

    def __call__(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Run once, in the shapes that the inputs have.

        UsageError where it has none such, or where the inputs hold an index that is out of range.
        """
        chosen = choose(self.path, self.interfaces, inputs)
        takes, gives = self.interfaces[chosen].inputs, self.interfaces[chosen].outputs
        given = [tensor(inputs[info.name]) for info in takes]
        try:
            with self._running:
                result = self._functions[chosen](*given)
        except IndexError as error:
            reason = str(error).strip().splitlines()[-1]
            raise UsageError(reason, RANGE_HINT, self.path) from error
        results = [result] if isinstance(result, ffi().Tensor) else list(result)
        return {info.name: array(value) for info, value in zip(gives, results, strict=True)}

    def times(self, inputs: dict[str, np.ndarray], runs: int) -> list[float]:
        """Seconds of each of so many runs, inputs and outputs copied, by the wall clock."""
        seconds = []
        for _ in range(runs):
            began = time.perf_counter()
            self(**inputs)
            seconds.append(time.perf_counter() - began)
        return seconds


def load(path: str | Path, threads: int = 0) -> Model:
    """Load a library with the manifest beside it; AnsorError if either is missing or damaged.

    threads: that a call takes, of those that all libraries of a process share; 0 for as many as the
    target has cores. DeviceError if it was built for another architecture than this machine's.
    """
    path = Path(path)
    manifest = read_manifest(path)
    if architecture(triple := manifest["target"]["triple"]) != architecture():
        raise DeviceError(
            f"{path} is built for {triple}, and this machine is {architecture()}",
            "copy it and its manifest to a machine of that kind and run it there",
        )
    return Model(path, manifest, threads)


def interfaces(manifest: dict[str, Any]) -> list[Interface]:
    """What a manifest says that a library takes and gives, for each of its shapes."""
    return [
        Interface(*(tuple(map(_tensor, one[kind])) for kind in ("inputs", "outputs")))
        for one in manifest.get("variants") or [manifest]
    ]


def _tensor(entry: dict[str, Any]) -> TensorInfo:
    return TensorInfo(entry["name"], tuple(entry["shape"]), entry["dtype"])


def choose(path: Path, known: Sequence[Interface], inputs: dict[str, np.ndarray]) -> int:
    """Which interface the inputs fit; UsageError that names every input that is amiss."""
    faults = [_faults(one.inputs, inputs) for one in known]
    if [] in faults:
        return faults.index([])
    what = "; ".join(faults[0]) if len(known) == 1 else _given(inputs)
    takes = "; or ".join(takes_text(one) for one in known)
    raise UsageError(f"inputs of {path} do not fit: {what}", f"it takes {takes}")


def takes_text(one: Interface) -> str:
    """The inputs of an interface, such as "x: float32[1, 3, 8, 8], y: int64[1]"."""
    return ", ".join(f"{info.name}: {info.dtype}{list(info.shape)}" for info in one.inputs)


def _given(inputs: dict[str, np.ndarray]) -> str:
    texts = (f"{name}: {given.dtype}{list(given.shape)}" for name, given in inputs.items())
    return f"{', '.join(texts) or 'none'} given"


def _faults(wanted: Sequence[TensorInfo], inputs: dict[str, np.ndarray]) -> list[str]:
    """Every input that is missing, unknown, or of the wrong type or shape."""
    names = {info.name for info in wanted}
    faults = [f"{name}: no such input" for name in inputs if name not in names]
    for info in wanted:
        given = inputs.get(info.name)
        if given is None:
            faults.append(f"{info.name}: missing")
        elif given.shape != info.shape or str(given.dtype) != info.dtype:
            faults.append(f"{info.name}: {given.dtype}{list(given.shape)} given")
    return faults


def main_functions(path: Path, count: int = 1, threads: int = 0) -> list[Any]:
    """A library's functions, one an interface, with their weights; AnsorError if it is none.

    threads: that a call takes; 0 for as many as its target has cores.
    """
    names = main_names(count)
    machine = open_machine(path, names, threads)
    return [machine[name] for name in names]


def main_names(count: int) -> list[str]:
    """The names of a library's functions, one an interface."""
    return ["main", *(f"main_{number}" for number in range(1, count))]


def open_machine(path: Path, names: Sequence[str], threads: int = 0) -> Any:
    """A library's virtual machine, these functions with their weights; AnsorError if it is none.

    threads: that a call takes; 0 for as many as its target has cores.
    """
    try:
        library = load_module(path)
        if threads:
            use_threads(library, threads)
        machine = library["vm_load_executable"]()
        machine["vm_initialization"](_CPU, 0, _POOLED)
        bind_weights(machine, partial(mapped, path), names)
        for name in names:
            machine[name]  # raises where there is none
    except (OSError, RuntimeError, AttributeError) as error:
        heed(error)
        reason = str(error).strip().splitlines()[-1]
        raise AnsorError(
            f"cannot be loaded: {reason}",
            "it may be built for another machine: see `target` in its manifest",
            path,
        ) from error
    return machine


def bind_weights(
    machine: Any, block: Callable[[int], Any], functions: Sequence[str] = ("main",)
) -> None:
    """Give functions of a virtual machine their weights (`codegen/weights.py`).

    block: makes a tensor, uint8, of the block of so many bytes. A library of version 0.1.0 has its
    weights in its code, and needs none.
    """
    if machine.implements_function("weights_size") and (size := machine["weights_size"]()):
        memory = block(size)
        for name in functions:
            views = machine[f"{name}_weights"](memory)
            machine["save_function"](name, name, True, *views)
