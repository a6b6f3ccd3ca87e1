"""ONNX Runtime, to verify libraries and to time them beside it: the only module that imports it."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

UNCOUNTED = 3  # the first runs of a profile, which are not counted
FEWEST = 5  # counted runs of a profile at least
_PROVIDER = "CPUExecutionProvider"


def version() -> str:
    """The version of ONNX Runtime that is installed."""
    return str(_module().__version__)


def open_session(
    model: Path | bytes,
    threads: int,
    *,
    judging: bool = False,
    as_written: bool = False,
) -> Any:
    """A model ready to run on this machine's processor; raises what ONNX Runtime raises.

    model: a file, or its content. threads: 0 for all cores. judging: whether its idle threads must
    not disturb measurements, and it multiplies floats where the model does. as_written: whether it
    runs node by node, without fusion.
    """
    options = _options(threads)
    if as_written:
        level = _module().GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    if judging:  # its idle threads would spin beside the code that is measured meanwhile
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Otherwise it rounds activations to 8 bits where weights are quantised in blocks.
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return _module().InferenceSession(model, options, providers=[_PROVIDER])


def _options(threads: int) -> Any:
    options = _module().SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1  # operators run one after another, without a second pool
    return options


def profile_nodes(
    model: Path, threads: int, inputs: dict[str, Any], seconds: float, optimized: Path
) -> dict[str, tuple[str, float]]:
    """The operator and the profiled seconds a run of each node, by the nodes' names.

    The nodes are those of the optimised graph, which is written to `optimized`.
    """
    options = _options(threads)
    options.optimized_model_filepath = str(optimized)
    options.enable_profiling = True
    options.profile_file_prefix = str(optimized.with_suffix(""))
    session = _module().InferenceSession(model, options, providers=[_PROVIDER])
    runs, end = 0, time.monotonic() + seconds
    while runs < UNCOUNTED + FEWEST or time.monotonic() < end:
        session.run(None, inputs)
        runs += 1
    events = json.loads(Path(session.end_profiling()).read_bytes())
    return _medians(events, runs)


def _medians(events: list[dict[str, Any]], runs: int) -> dict[str, tuple[str, float]]:
    """Medians of each node's time in a run, without the first runs.

    A node may have several events in a run, which are added up.
    """
    taken: dict[str, list[float]] = defaultdict(list)
    operators = {}
    for event in events:
        name, mark, _ = event["name"].rpartition("_kernel_time")
        if event.get("cat") == "Node" and mark:
            taken[name].append(event["dur"] * 1e-6)
            operators[name] = event["args"]["op_name"]
    medians = {}
    for name, times in taken.items():
        each = len(times) // runs
        sums = [sum(times[at : at + each]) for at in range(0, each * runs, each)]
        medians[name] = operators[name], median(sums[UNCOUNTED:])
    return medians


def _module() -> Any:
    # It would store an identifier of this machine in the home directory, and send telemetry.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime
