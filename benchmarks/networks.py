"""The tool against ONNX Runtime on whole networks: where the README's figures come from.

    python benchmarks/networks.py [--only NAME,...] [--effort E] [--trials N] [--json FILE]

Each network is built with `ansor_deploy.pipeline.build`, loaded as a user loads it, checked
against ONNX Runtime's numbers and timed beside it, in one process and on the same cores.

How two thread pools share one process: both spin for a while after a run, which is what makes
them fast and what would slow the other one down. Spinning is left on, since it is each one's
default. Instead the two take turns in blocks of runs; before each block both pools are given
time to fall asleep, and the first runs of a block, which wake them again, are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks import peak, zoo
from benchmarks.flops import count_flops

BLOCKS = 8
BLOCK_SECONDS = 0.5
PAUSE_SECONDS = 0.2  # both pools sleep well before
UNCOUNTED = 3  # runs at the start of a block
HEADER = "network          ours ms    ORT ms   ratio  of peak  trials       s"


@dataclass(frozen=True)
class Row:
    """One network. ratio: our time over ONNX Runtime's, below one is faster."""

    name: str
    ours_ms: float
    onnxruntime_ms: float
    ratio: float
    peak_share: float
    trials: int
    seconds: float


def main() -> None:
    """Build and time every chosen network; print as they come."""
    args = _arguments()
    limits = peak.measure()  # first: it sets the width of TVM's pool before TVM is loaded
    print(f"{limits.cores} cores, peak {limits.gflops:.0f} GFLOP/s, {limits.gbytes:.0f} GB/s")
    print(HEADER)
    rows = []
    for name in args.only:
        row = _network(name, args, limits)
        rows.append(row)
        print(
            f"{row.name:14}{row.ours_ms:10.3f}{row.onnxruntime_ms:10.3f}{row.ratio:8.3f}"
            f"{row.peak_share:9.1%}{row.trials:8d}{row.seconds:8.0f}",
            flush=True,
        )
    geomean = statistics.geometric_mean(row.ratio for row in rows)
    print(f"{'geomean':34}{geomean:8.3f}")
    if args.json:
        found = {"peak": asdict(limits), "networks": [asdict(row) for row in rows]}
        args.json.write_text(json.dumps({**found, "geomean": geomean}, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = list(zoo.NETWORKS)
    parser.add_argument("--only", type=_names, default=names, help=",".join(names))
    parser.add_argument("--effort", default="normal", help="as of `build`")
    parser.add_argument("--trials", type=int, help="most candidates measured, per network")
    parser.add_argument("--registry", type=Path, help="default: registry.db in --out")
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"), help="work folder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(zoo.NETWORKS):
        raise argparse.ArgumentTypeError(f"no network {', '.join(sorted(unknown))}")
    return names


def _network(name: str, args: argparse.Namespace, limits: peak.Peak) -> Row:
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{name}.onnx"
    model = zoo.NETWORKS[name]()
    onnx.save(model, path)
    built = _build(path, args)
    values, flops = zoo.inputs(model), count_flops(model)
    ours, theirs = _ours(built.artifact, values), _onnxruntime(path, values, limits.cores)
    _compare(name, ours(), theirs())
    ours_s, theirs_s = interleaved(ours, theirs)
    return Row(
        name=name,
        ours_ms=ours_s * 1e3,
        onnxruntime_ms=theirs_s * 1e3,
        ratio=ours_s / theirs_s,
        peak_share=flops / ours_s / 1e9 / limits.gflops,
        trials=built.tuned.trials,
        seconds=built.tuned.tune_seconds,
    )


def _build(model: Path, args: argparse.Namespace) -> Any:
    from ansor_deploy.pipeline import build
    from ansor_deploy.project import Project
    from ansor_deploy.report.choose import report_on_stderr
    from ansor_deploy.request import EFFORTS, Outputs, Request
    from ansor_deploy.target import load_target

    budget = replace(EFFORTS[args.effort], trials=args.trials)
    request = Request(
        target=load_target("host", Project.find().target_path()),
        registry=args.registry or args.out / "registry.db",
        budget=budget,
    )
    with report_on_stderr(plain=True) as report:
        return build(model, Outputs(model.with_suffix(".so")), request, report)


def _ours(artifact: Path, values: dict[str, np.ndarray]) -> Callable[[], list[np.ndarray]]:
    from ansor_deploy import runtime

    model = runtime.load(artifact)
    return lambda: list(model(**values).values())


def _onnxruntime(
    path: Path, values: dict[str, np.ndarray], cores: int
) -> Callable[[], list[np.ndarray]]:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = cores
    options.inter_op_num_threads = 1
    request = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: request.run(None, values)


def _compare(name: str, ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    """A fast wrong answer is no figure."""
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3, err_msg=name)


def interleaved(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """Median seconds of each, from alternating blocks; who begins alternates too."""
    times: dict[Callable[[], Any], list[float]] = {ours: [], theirs: []}
    for block in range(BLOCKS):
        for run in (ours, theirs) if block % 2 else (theirs, ours):
            time.sleep(PAUSE_SECONDS)
            times[run] += _block(run)
    return statistics.median(times[ours]), statistics.median(times[theirs])


def _block(run: Callable[[], Any]) -> list[float]:
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
