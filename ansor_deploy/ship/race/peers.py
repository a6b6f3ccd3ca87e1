"""Other engines with a library's model, to race the library with.

Each runs with its default settings on the given number of threads, in float32: OpenVINO would use
bfloat16 where a processor has instructions for it, so that is forbidden.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ModelError, UsageError
from ...runtime.tensors import in_memory, memory_bytes
from ...system.limits import allow_large_files
from ...system.machine_fault import raise_if_fault
from ...system.worker import Worker, WorkerFailure
from ..verify.onnx_runtime import open_session, profile_nodes, version

if TYPE_CHECKING:
    import numpy as np
    import onnx

CALL_SECONDS = 600.0  # the limit of loading a model, with a few runs
Call = Callable[[dict[str, "np.ndarray"]], Any]


@dataclass(frozen=True)
class EngineNode:
    """A kernel of another engine. name, op: the engine's names. nodes: the model's, by name."""

    name: str
    op: str
    seconds: float
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Peer:
    """An engine with a model. name: with its version. call: from inputs to outputs."""

    name: str
    call: Call

    def times(self, inputs: dict[str, np.ndarray], runs: int) -> list[float]:
        """Seconds of each of `runs` runs, one after the other; ModelError if it refuses inputs."""
        try:
            return [self._seconds(inputs) for _ in range(runs)]
        except Exception as error:
            raise _refused(self.name, "cannot run", error) from error

    def _seconds(self, inputs: dict[str, np.ndarray]) -> float:
        began = time.perf_counter()
        self.call(inputs)
        return time.perf_counter() - began


def name_of(engine: str) -> str:
    """Import an engine and return its name with its version; UsageError if it is not installed."""
    try:
        return _NAMES[engine]()
    except ImportError as error:
        hint = f"install it beside this tool: pip install 'ansor-deploy[{engine}]'"
        raise UsageError(f"{engine} is not installed", hint) from error


def open_peer(engine: str, model: Path | bytes, threads: int) -> Peer:
    """The engine of that name, one of `request.ENGINES`. model: a file, or its content.

    UsageError where it is not installed, ModelError where it refuses the model.
    """
    name = name_of(engine)
    try:
        return Peer(name, _OPEN[engine](model, threads))
    except Exception as error:
        raise _refused(engine, "refuses", error) from error


def profile_parts(
    model: onnx.ModelProto, threads: int, inputs: dict[str, np.ndarray], seconds: float
) -> tuple[str, list[EngineNode]]:
    """ONNX Runtime's name, and its time for each node of its optimised graph of a model.

    ModelError if it refuses the model, or crashes with it, which ends a process of its own.
    """
    from ...model.graph.nodes import computed_by, with_names
    from ...model.onnx.written import write_model

    named = with_names(model)
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as place:
        folder = Path(place)
        words: dict[str, Any] = {
            "threads": threads,
            "seconds": seconds,
            "optimized": str(folder / "optimized.onnx"),
        }
        words |= {"model": str(write_model(named, folder)), "memory": str(folder / "inputs")}
        name, taken = _profiled(words, inputs)
        computes = computed_by(named, Path(words["optimized"]))
    parts = [
        EngineNode(name, op, took, tuple(node.name for node in computes.get(name, ())))
        for name, (op, took) in taken.items()
    ]
    return name, parts


def _profiled(words: dict[str, Any], inputs: dict[str, np.ndarray]) -> Any:
    """The answer of `profiled`, for inputs that are left in the file "memory"."""
    import numpy as np

    kinds = [(one.shape, one.dtype.name) for one in inputs.values()]
    memory = np.memmap(words["memory"], np.uint8, "w+", shape=max(1, memory_bytes(kinds)))
    for part, one in zip(in_memory(memory, kinds), inputs.values(), strict=True):
        part[...] = one
    payload = {**words, "inputs": list(inputs), "kinds": kinds}
    try:
        with closing(Worker(__name__)) as worker:
            found = worker.call(f"{__name__}:profiled", payload, words["seconds"] + CALL_SECONDS)
    except WorkerFailure as failure:
        raise ended("onnxruntime", failure) from failure
    if "refused" in found:
        raise _refused("onnxruntime", "refuses", found["refused"])
    return found["answer"]


def profiled(payload: dict[str, Any]) -> dict[str, Any]:
    """In a child process: ONNX Runtime's name and what `profile_nodes` finds, or its refusal."""
    import numpy as np

    allow_large_files()  # the optimised graph has all weights
    arrays = in_memory(np.memmap(payload["memory"], np.uint8, "r"), payload["kinds"])
    inputs = dict(zip(payload["inputs"], arrays, strict=True))
    paths = Path(payload["model"]), Path(payload["optimized"])
    try:
        words = paths[0], payload["threads"], inputs, payload["seconds"], paths[1]
        return {"answer": [_onnxruntime_name(), profile_nodes(*words)]}
    except Exception as error:  # noqa: BLE001 - any exception of ONNX Runtime refuses the model
        raise_if_fault(error)
        return {"refused": str(error)}


def ended(engine: str, failure: WorkerFailure) -> ModelError:
    """The error of an engine that has ended its process, or had to be ended."""
    how = {"crash": "crashes with", "timeout": "does not end with"}.get(failure.kind, "fails with")
    return _refused(engine, how, failure.message)


def _refused(engine: str, what: str, error: Exception | str) -> ModelError:
    """The error with an engine's message in one line; a fault of the machine is raised instead."""
    if isinstance(error, Exception):
        raise_if_fault(error)
    return ModelError(f"{engine} {what} the model: {' '.join(str(error).split())}")


def _onnxruntime_name() -> str:
    return f"ONNX Runtime {version()}"


def _onnxruntime(model: Path | bytes, threads: int) -> Call:
    session = open_session(model, threads)
    return lambda inputs: session.run(None, inputs)


def _openvino_name() -> str:
    import openvino

    return f"OpenVINO {openvino.__version__.partition('-')[0]}"


def _openvino(model: Path | bytes, threads: int) -> Call:
    import openvino

    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
    }
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", settings)
    request = compiled.create_infer_request()

    def call(inputs: dict[str, np.ndarray]) -> Any:
        # A port has all names of its tensor in the graph, including the input's own.
        feeds = {
            port: inputs[name] for port in compiled.inputs for name in port.names & set(inputs)
        }
        return list(request.infer(feeds, share_outputs=True).values())

    return call


_NAMES: dict[str, Callable[[], str]] = {
    "onnxruntime": _onnxruntime_name,
    "openvino": _openvino_name,
}
_OPEN: dict[str, Callable[[Path | bytes, int], Call]] = {
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
}
