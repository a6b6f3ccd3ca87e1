"""Other engines with a library's model, to race the library with.

Each runs with its default settings on the given number of threads, in float32: OpenVINO would use
bfloat16 where a processor has instructions for it, so that is forbidden.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ModelError, UsageError
from ...system.machine_fault import raise_if_fault
from ..verify.onnx_runtime import open_session, profile_nodes, version

if TYPE_CHECKING:
    import numpy as np
    import onnx

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

    ModelError if it refuses the model.
    """
    from ...model.graph.nodes import computed_by, with_names
    from ...model.onnx.written import write_model

    named = with_names(model)
    with tempfile.TemporaryDirectory(prefix="ansor-deploy-") as folder:
        path = Path(folder, "optimized.onnx")
        try:
            taken = profile_nodes(write_model(named, Path(folder)), threads, inputs, seconds, path)
        except Exception as error:
            raise _refused("onnxruntime", "refuses", error) from error
        computes = computed_by(named, path)
    parts = [
        EngineNode(name, op, took, tuple(node.name for node in computes.get(name, ())))
        for name, (op, took) in taken.items()
    ]
    return _onnxruntime_name(), parts


def _refused(engine: str, what: str, error: Exception) -> ModelError:
    """The error with an engine's message in one line; a fault of the machine is raised instead."""
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
        return request.infer(feeds, share_outputs=True)

    return call


_NAMES: dict[str, Callable[[], str]] = {
    "onnxruntime": _onnxruntime_name,
    "openvino": _openvino_name,
}
_OPEN: dict[str, Callable[[Path | bytes, int], Call]] = {
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
}
