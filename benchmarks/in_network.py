"""The kernels of a library and the nodes of ONNX Runtime, each timed where it runs in a network."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from ansor_deploy.runtime.profile import Replay
from benchmarks.contractions import Node, of_graph

TURNS = 10
BLOCK_SECONDS = 0.1  # of one of both in a turn
FEWEST, MOST = 2, 60  # runs in a block; two more, at its start, are not counted
UNCOUNTED = 2
PAUSE_SECONDS = 0.2  # before a block of several threads: those of the other one fall asleep

Event = Mapping[str, Any]


class OnnxRuntime:
    """ONNX Runtime as it is by default, with its profile on."""

    def __init__(self, path: Path, values: Mapping[str, np.ndarray], threads: int) -> None:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime

        self._folder = tempfile.TemporaryDirectory()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.enable_profiling = True
        options.profile_file_prefix = f"{self._folder.name}/profile"
        self._optimised = Path(self._folder.name, "optimised.onnx")
        options.optimized_model_filepath = str(self._optimised)
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(path, options, providers=providers)
        self._values = values

    def outputs(self) -> list[np.ndarray]:
        """What a run gives."""
        found: list[np.ndarray] = self._session.run(None, self._values)
        return found

    def whole(self) -> float:
        """Seconds of a run, with its profile."""
        started = time.perf_counter()
        self._session.run(None, self._values)
        return time.perf_counter() - started

    def runs(self) -> list[list[Event]]:
        """The events of each run's nodes; it cannot run any more after that."""
        runs: list[list[Event]] = [[]]
        for event in json.loads(Path(self._session.end_profiling()).read_text()):
            if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
                runs[-1].append(event)
            elif event["name"] == "model_run":
                runs.append([])
        return runs[:-1]

    def graph(self) -> onnx.ModelProto:
        """Its own form of the model, which its profile is about."""
        return onnx.load(self._optimised)


@dataclass(frozen=True)
class Timed:
    """Seconds of each counted run. kernels: of each call; nodes: of each node by its name.

    contractions: those among ONNX Runtime's nodes, in their order.
    """

    kernels: list[list[float]]
    ours: list[float]
    theirs: list[float]
    nodes: dict[str, list[float]]
    contractions: list[Node]


def in_turns(library: Replay, other: OnnxRuntime, threads: int) -> Timed:
    """Kernels, the whole library, and ONNX Runtime, in turns of blocks of runs."""
    kernels: list[list[float]] = []
    ours: list[float] = []
    theirs: list[float] = []
    counted: list[int] = []
    other.outputs()
    done = 1
    for turn in range(TURNS):
        for which in range(3):
            time.sleep(PAUSE_SECONDS if threads > 1 else 0.0)
            if (turn + which) % 3 == 0:
                kernels += block(library.kernels)
            elif (turn + which) % 3 == 1:
                ours += block(library.whole)
            else:
                found = block(other.whole)
                theirs += found
                counted += range(done + UNCOUNTED, done + UNCOUNTED + len(found))
                done += UNCOUNTED + len(found)
    runs = other.runs()
    nodes: dict[str, list[float]] = {}
    for at in counted:
        for event in runs[at]:
            name = event["name"].removesuffix("_kernel_time")
            nodes.setdefault(name, []).append(event["dur"] / 1e6)
    return Timed(kernels, ours, theirs, nodes, of_graph(other.graph(), runs[-1]))


def block(run: Callable[[], Any]) -> list[Any]:
    """What each of several runs gives, but for the first two, which warm up."""
    for _ in range(UNCOUNTED):
        run()
    found: list[Any] = []
    end = time.perf_counter() + BLOCK_SECONDS
    while len(found) < FEWEST or (time.perf_counter() < end and len(found) < MOST):
        found.append(run())
    return found
