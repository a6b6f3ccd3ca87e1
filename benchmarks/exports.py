"""Every network of a folder, built as a user builds it, untuned: seconds, sizes, speed, memory.

    python -m benchmarks.exports FOLDER [--only NAME,...] [--json FILE]

Each is built by the command itself with `--trials 0` and an empty registry, which verifies it
against ONNX Runtime: first with an empty cache of kernels (clean), then with the one that this left
(warm). The library then takes turns with ONNX Runtime at one thread and at all, in a process of its
own, and each is loaded and called once in another to see how much memory that takes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ansor_deploy.artifact.files import read_manifest

HEADER = (
    "network                       clean s  warm s  kernels   file MB  memory MB   ORT's"
    "  1 thread  all threads"
)
STAGE = "["  # how the plain report begins the line of a stage
# Programs that load a model and call it once: theirs is the memory that is reported.
OURS = """
import sys
from ansor_deploy.build.draws import seeded_inputs
from ansor_deploy.runtime.model import load
model = load(sys.argv[2])
model(**seeded_inputs(model.inputs, 0, 2))
"""
THEIRS = """
import sys
from pathlib import Path
from ansor_deploy.artifact.files import read_manifest
from ansor_deploy.build.draws import seeded_inputs
from ansor_deploy.runtime.model import interfaces
from benchmarks.side_by_side import onnxruntime
inputs = interfaces(read_manifest(Path(sys.argv[2])))[0].inputs
onnxruntime(Path(sys.argv[1]), seeded_inputs(inputs, 0, 2), 1)()
"""
RESIDENT = "\nprint([line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line][0])"


@dataclass(frozen=True)
class Row:
    """One network. Ratios: our time over ONNX Runtime's; memory: the peak of a process, in MB."""

    name: str
    clean_s: float
    warm_s: float
    stages: dict[str, float]
    kernels: int
    file_mb: float
    memory_mb: float
    onnxruntime_mb: float
    one_thread: dict[str, Any]
    all_threads: dict[str, Any]


def main() -> None:
    """Build and time every chosen network; print as they come, failures too."""
    args = _arguments()
    print(HEADER)
    rows, failed = [], {}
    for model in sorted(args.folder.glob("*.onnx")):
        if args.only and model.stem not in args.only:
            continue
        try:
            rows.append(_network(model, args.out / model.stem))
            print(_line(rows[-1]), flush=True)
        except subprocess.CalledProcessError as error:
            failed[model.stem] = (error.stderr or "").strip()[-400:]
            print(f"{model.stem:28}  failed ({error.returncode}): {failed[model.stem]}", flush=True)
    if rows:
        print(_geomean(rows))
    if args.json:
        found = {"networks": [asdict(row) for row in rows], "failed": failed}
        args.json.write_text(json.dumps(found, indent=2) + "\n")
    sys.exit(1 if failed else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="of ONNX files with weights")
    parser.add_argument("--only", type=lambda text: text.split(","), help="names of files")
    parser.add_argument("--out", type=Path, default=Path("out/exports"), help="work folder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    return parser.parse_args()


def _network(model: Path, folder: Path) -> Row:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    clean_s, stages, _ = _build(model, folder, "clean")
    warm_s, _, library = _build(model, folder, "warm")
    width = len(os.sched_getaffinity(0))
    return Row(
        name=model.stem,
        clean_s=clean_s,
        warm_s=warm_s,
        stages=stages,
        kernels=len(read_manifest(library)["tasks"]),
        file_mb=library.stat().st_size / 1e6,
        memory_mb=_resident(OURS, model, library),
        onnxruntime_mb=_resident(THEIRS, model, library),
        one_thread=_beside(model, library, 1),
        all_threads=_beside(model, library, width),
    )


def _build(model: Path, folder: Path, name: str) -> tuple[float, dict[str, float], Path]:
    """(seconds, seconds by stage, library) of one build in a process of its own."""
    library = folder / f"{name}.so"
    command = [sys.executable, "-m", "ansor_deploy", "build", str(model), "-o", str(library)]
    command += ["--trials", "0", "--registry", str(folder / f"{name}.db")]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder.resolve() / "cache")}
    begin = last = time.perf_counter()
    stages: dict[str, float] = {}
    lines, stage = [], "start"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stderr or ():
            lines.append(line)
            if line.startswith(STAGE):
                stages[stage] = stages.get(stage, 0) + time.perf_counter() - last
                stage, last = line[1:].partition("]")[0], time.perf_counter()
    stages[stage] = stages.get(stage, 0) + time.perf_counter() - last
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stderr="".join(lines))
    return time.perf_counter() - begin, stages, library


def _resident(code: str, model: Path, library: Path) -> float:
    return float(_python("-c", code + RESIDENT, str(model), str(library))) / 1e3


def _beside(model: Path, library: Path, threads: int) -> dict[str, Any]:
    words = ("-m", "benchmarks.side_by_side", str(model), str(library), "--threads", str(threads))
    found: dict[str, Any] = json.loads(_python(*words))
    return found


def _python(*words: str) -> str:
    done = subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True)
    return done.stdout


def _line(row: Row) -> str:
    return (
        f"{row.name:28}{row.clean_s:9.1f}{row.warm_s:8.1f}{row.kernels:9d}{row.file_mb:10.1f}"
        f"{row.memory_mb:11.0f}{row.onnxruntime_mb:8.0f}"
        f"{row.one_thread['ratio']:10.2f}{row.all_threads['ratio']:13.2f}"
    )


def _geomean(rows: list[Row]) -> str:
    means = [
        statistics.geometric_mean(row["ratio"] for row in each)
        for each in ([row.one_thread for row in rows], [row.all_threads for row in rows])
    ]
    return f"{'geomean':83}{means[0]:10.2f}{means[1]:13.2f}"


if __name__ == "__main__":
    main()
