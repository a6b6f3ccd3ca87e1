"""A built library, loaded and called with arrays by name."""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DeviceError, UsageError
from ..system.host import architecture
from .functions import into_functions
from .manifest_json import read_json
from .out_of_range import RANGE_HINT
from .tensors import numpy_dtype, unwritten


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

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """The inputs' shapes by their names."""
        return {info.name: info.shape for info in self.inputs}

    @property
    def takes(self) -> str:
        """The inputs as text, such as "x: float32[1, 3, 8, 8], y: int64[1]"."""
        return _text(self.inputs)

    @property
    def gives(self) -> str:
        """The outputs as text."""
        return _text(self.outputs)

    def to_json(self) -> dict[str, Any]:
        """As it stands in a manifest."""
        return {
            kind: [{**asdict(info), "shape": list(info.shape)} for info in tensors]
            for kind, tensors in vars(self).items()
        }


class Model:
    """A loaded library: call it with the inputs by name, get the outputs by name.

    Threads may share it: one runs, the others wait. Inputs are read where they lie, if they are
    contiguous and may be written to, else from a copy; nobody may change them during a call.

    interfaces: what it takes and gives; several where it was built for several shapes. inputs,
    outputs: of the first. threads: that a call takes; 0 for as many as the target has cores. code:
    of a library with code for several targets, the number of the one that runs; None for the best.
    manifest: what it says of that.
    """

    def __init__(
        self, path: Path, manifest: dict[str, Any], threads: int = 0, code: int | None = None
    ) -> None:
        self.path = path
        self.interfaces = interfaces(manifest)
        self.inputs, self.outputs = self.interfaces[0].inputs, self.interfaces[0].outputs
        several = manifest.get("codes")
        wanted = threads or (0 if several else int(manifest["target"]["cores"]))
        words = (path, len(self.interfaces), wanted, code)
        self.code, self._functions = into_functions(*words)
        self.manifest = {**manifest, **(several[self.code] if several else {})}
        self.threads = threads or int(self.manifest["target"]["cores"])
        self._running = threading.Lock()

    def __call__(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Run once, in the shapes that the inputs have; the results are the caller's.

        UsageError where it has none such, or where the inputs hold an index that is out of range.
        """
        chosen = choose(self.path, self.interfaces, inputs)
        outputs = {
            info.name: unwritten(info.shape, info.dtype) for info in self.interfaces[chosen].outputs
        }
        self._run(chosen, inputs, outputs)
        return outputs

    def run_into(self, outputs: Mapping[str, np.ndarray], /, **inputs: np.ndarray) -> None:
        """Run once, and write the outputs to arrays of the caller's: all of them, by name.

        They are written in place; from where one is an input, too, that is copied first. UsageError
        as in a call, and where an array is not what an output needs.
        """
        chosen = choose(self.path, self.interfaces, inputs)
        check_outputs(self.path, self.interfaces[chosen].outputs, outputs)
        apart = {name: _apart(one, outputs.values()) for name, one in inputs.items()}
        self._run(chosen, apart, outputs)

    def _run(
        self, chosen: int, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> None:
        one = self.interfaces[chosen]
        given = [inputs[info.name] for info in one.inputs]
        made = [outputs[info.name] for info in one.outputs]
        try:
            with self._running:
                self._functions[chosen](given, made)
        except IndexError as error:
            reason = str(error).strip().splitlines()[-1]
            raise UsageError(reason, RANGE_HINT, self.path) from error

    def times(self, inputs: dict[str, np.ndarray], runs: int) -> list[float]:
        """Seconds of each of so many runs, by the wall clock."""
        seconds = []
        for _ in range(runs):
            began = time.perf_counter()
            self(**inputs)
            seconds.append(time.perf_counter() - began)
        return seconds


def load(path: str | Path, threads: int = 0, code: int | None = None) -> Model:
    """Load a library with the manifest beside it; AnsorError if either is missing or damaged.

    threads: that a call takes, of those that all libraries of a process share; 0 for as many as the
    target has cores. code: as of `Model`. DeviceError if it was built for another architecture than
    this machine's, or the processor lacks what its code needs.
    """
    path = Path(path)
    manifest = read_json(path)
    check_architecture(path, manifest)
    return Model(path, manifest, threads, code)


def check_architecture(path: Path, manifest: Mapping[str, Any]) -> None:
    """DeviceError where a library was built for another architecture than this machine's."""
    if architecture(triple := manifest["target"]["triple"]) != architecture():
        raise DeviceError(
            f"{path} is built for {triple}, and this machine is {architecture()}",
            "copy it and its manifest to a machine of that kind and run it there",
        )


def interfaces(manifest: dict[str, Any]) -> list[Interface]:
    """What a manifest says that a library takes and gives, for each of its shapes."""
    return [
        Interface(*(tuple(map(_tensor, one[kind])) for kind in ("inputs", "outputs")))
        for one in manifest.get("variants") or [manifest]
    ]


def _tensor(entry: dict[str, Any]) -> TensorInfo:
    return TensorInfo(entry["name"], tuple(entry["shape"]), entry["dtype"])


def choose(path: Path, known: Sequence[Interface], inputs: Mapping[str, np.ndarray]) -> int:
    """Which interface the inputs fit; UsageError that names every input that is amiss."""
    faults = [_faults(one.inputs, inputs) for one in known]
    if [] in faults:
        return faults.index([])
    what = "; ".join(faults[0]) if len(known) == 1 else _given(inputs)
    takes = "; or ".join(interface.takes for interface in known)
    raise UsageError(f"inputs of {path} do not fit: {what}", f"it takes {takes}")


def _text(tensors: Sequence[TensorInfo]) -> str:
    return ", ".join(f"{info.name}: {info.dtype}{list(info.shape)}" for info in tensors)


def check_outputs(
    path: Path, wanted: Sequence[TensorInfo], outputs: Mapping[str, np.ndarray]
) -> None:
    """UsageError that names each array that an output cannot be written to."""
    faults = _faults(wanted, outputs, "output")
    for (name, one), (other, second) in combinations(outputs.items(), 2):
        if np.may_share_memory(one, second):
            faults.append(f"{name} and {other}: they share memory")
    for name, one in outputs.items():
        if not one.flags.carray:
            faults.append(f"{name}: not contiguous, not aligned, or not to be written to")
    if faults:
        gives = _text(wanted)
        raise UsageError(f"outputs of {path} do not fit: {'; '.join(faults)}", f"it gives {gives}")


def _apart(given: np.ndarray, outputs: Iterable[np.ndarray]) -> np.ndarray:
    """An array that no output is written over."""
    return given.copy() if any(np.may_share_memory(given, one) for one in outputs) else given


def _given(inputs: Mapping[str, np.ndarray]) -> str:
    texts = (f"{name}: {given.dtype}{list(given.shape)}" for name, given in inputs.items())
    return f"{', '.join(texts) or 'none'} given"


def _faults(
    wanted: Sequence[TensorInfo], arrays: Mapping[str, np.ndarray], kind: str = "input"
) -> list[str]:
    """Every array that is missing, unknown, or of the wrong type or shape."""
    names = {info.name for info in wanted}
    faults = [f"{name}: no such {kind}" for name in arrays if name not in names]
    for info in wanted:
        given = arrays.get(info.name)
        if given is None:
            faults.append(f"{info.name}: missing")
        elif given.shape != info.shape or given.dtype != numpy_dtype(info.dtype):
            faults.append(f"{info.name}: {given.dtype}{list(given.shape)} given")
    return faults
