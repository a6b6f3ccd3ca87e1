"""The tool against ONNX Runtime on whole networks: where the README's figures come from.

    python benchmarks/networks.py [--only NAME,...] [--effort E] [--trials N] [--json FILE]

Each network is built with `ansor_deploy.pipeline.build`, loaded as a user loads it, checked
against ONNX Runtime's numbers and timed beside it, in one process and on the same cores.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from benchmarks import peak, side_by_side, zoo
from benchmarks.flops import count_flops

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
    flops = count_flops(model)
    ours, theirs = side_by_side.load_both(path, built.artifact, limits.cores)
    found = side_by_side.beside(ours, theirs, limits.cores)
    return Row(
        name=name,
        ours_ms=found.ours_ms,
        onnxruntime_ms=found.onnxruntime_ms,
        ratio=found.ratio,
        peak_share=flops / found.ours_ms / 1e6 / limits.gflops,
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


if __name__ == "__main__":
    main()
