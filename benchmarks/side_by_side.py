"""A built library beside ONNX Runtime on one model, in one process and on the same cores.

    python -m benchmarks.side_by_side model.onnx model.so --threads 1

Prints one line of JSON. How two thread pools share one process: both spin for a while after a run,
which is what makes them fast and what would slow the other one down. Spinning is left on, since it
is each one's default. Instead the two take turns in blocks of runs; before each block both pools
are given time to fall asleep, and the first runs of a block, which wake them, are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

Run = Callable[[], list[np.ndarray]]

TURNS = 8
BLOCK_SECONDS = 0.5
PAUSE_SECONDS = 0.2  # both pools sleep well before
UNCOUNTED = 3  # runs at the start of a block


@dataclass(frozen=True)
class Beside:
    """Median milliseconds of each, and the median over turns of ours / theirs with quartiles."""

    threads: int
    ours_ms: float
    onnxruntime_ms: float
    ratio: float
    quartiles: tuple[float, float]


def main() -> None:
    """Time one library beside ONNX Runtime and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("library", type=Path)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    ours, theirs = load_both(args.model, args.library, args.threads)
    print(json.dumps(asdict(beside(ours, theirs, args.threads))))


def load_both(model: Path, library: Path, threads: int) -> tuple[Run, Run]:
    """Calls of the library and of ONNX Runtime with the same seeded inputs, numbers compared."""
    from ansor_deploy.artifact.files import read_manifest
    from ansor_deploy.build.draws import seeded_inputs
    from ansor_deploy.runtime.model import Model

    loaded = Model(library, read_manifest(library), threads)
    values = seeded_inputs(loaded.inputs, seed=0, upper=2)
    ours, theirs = lambda: list(loaded(**values).values()), onnxruntime(model, values, threads)
    compare(model.stem, ours(), theirs())
    return ours, theirs


def onnxruntime(path: Path, values: dict[str, np.ndarray], threads: int) -> Run:
    """A call of ONNX Runtime with these inputs, as it is by default on so many threads."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, values)


def compare(name: str, ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    """AssertionError where the numbers differ, by the rule of `verify`: it is no figure then."""
    from ansor_deploy.build.tolerance import compare as judge

    for one, other in zip(ours, theirs, strict=True):
        ok, _, error = judge(one, other)
        if not ok:
            raise AssertionError(f"{name}: outputs differ by {error:.2g} of their scale")


def beside(ours: Run, theirs: Run, threads: int) -> Beside:
    """Both in turns of blocks; who begins alternates too."""
    turns: list[tuple[list[float], list[float]]] = []
    for number in range(TURNS):
        order = (ours, theirs) if number % 2 else (theirs, ours)
        taken = {run: _block(run) for run in order}
        turns.append((taken[ours], taken[theirs]))
    ratios = [statistics.median(own) / statistics.median(other) for own, other in turns]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    ours_s, theirs_s = (statistics.median(t for turn in turns for t in turn[at]) for at in (0, 1))
    return Beside(threads, ours_s * 1e3, theirs_s * 1e3, middle, (low, high))


def _block(run: Run) -> list[float]:
    time.sleep(PAUSE_SECONDS)
    for _ in range(UNCOUNTED):
        run()
    times: list[float] = []
    while not times or sum(times) < BLOCK_SECONDS:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


if __name__ == "__main__":
    main()
