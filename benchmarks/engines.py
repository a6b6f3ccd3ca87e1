"""Who takes part in a race of whole networks: a built library, ONNX Runtime, OpenVINO.

    python -m benchmarks.engines ENGINE MODEL LIBRARY

loads one of them, calls it once and prints the most memory that this process had, in MB. Each runs
as it is by default on so many threads, in float32: OpenVINO takes bfloat16 where a processor has
instructions for it, unless it is forbidden.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

Values = Mapping[str, np.ndarray]
Run = Callable[[], list[np.ndarray]]

OURS = "ours"


def inputs(library: Path) -> dict[str, np.ndarray]:
    """Seeded inputs of a built library, and so of its model."""
    from ansor_deploy.artifact.files import read_manifest
    from ansor_deploy.build.draws import seeded_inputs
    from ansor_deploy.runtime.model import interfaces

    return seeded_inputs(interfaces(read_manifest(library))[0].inputs, seed=0, upper=2)


def ours(library: Path, values: Values, threads: int) -> Run:
    """A call of a built library."""
    from ansor_deploy.runtime import load

    model = load(library, threads)
    return lambda: list(model(**values).values())


def onnxruntime(model: Path, values: Values, threads: int) -> Run:
    """A call of ONNX Runtime."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, dict(values))


def openvino(model: Path, values: Values, threads: int) -> Run:
    """A call of OpenVINO, tuned for latency; its outputs lie in its own memory."""
    import openvino

    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
    }
    compiled = openvino.Core().compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    # A port has all names that the graph gave its tensor, among them the input's own.
    feeds = {port: values[name] for port in compiled.inputs for name in port.names & set(values)}
    return lambda: list(request.infer(feeds, share_outputs=True).values())


PEERS: dict[str, Callable[[Path, Values, int], Run]] = {
    "onnxruntime": onnxruntime,
    "openvino": openvino,
}


def peers(text: str) -> list[str]:
    """The names in a list with commas, as an option has it."""
    names = [name for name in text.split(",") if name]
    if unknown := set(names) - set(PEERS):
        raise argparse.ArgumentTypeError(f"no engine {', '.join(sorted(unknown))}")
    return names


def resident(engine: str, model: Path, library: Path) -> float:
    """The most memory, in MB, of a process that loads a network and runs it once."""
    words = [sys.executable, "-m", "benchmarks.engines", engine, str(model), str(library)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Call one engine once, and print what memory this process had at most."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("engine", choices=[OURS, *PEERS])
    parser.add_argument("model", type=Path)
    parser.add_argument("library", type=Path)
    args = parser.parse_args()
    values = inputs(args.library)
    if args.engine == OURS:
        ours(args.library, values, 1)()
    else:
        PEERS[args.engine](args.model, values, 1)()
    (line,) = re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    print(int(line) / 1e3)


if __name__ == "__main__":
    main()
