"""Whole networks beside ONNX Runtime and OpenVINO: the first figures of docs/benchmarks.md.

The networks are those of `networks/zoo.py` and every ONNX file of the folder. Each is built by the
command, as by a user: with an empty registry and an empty cache of kernels for each effort. All its
libraries and the engines then take turns in one process, for each number of threads. Each is also
loaded and called once in a process of its own, which shows its memory. Results are kept in
`results.jsonl` of the work folder as soon as they are found: the same command continues where it
was stopped.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import onnx

from benchmarks.machine.peak import measured_apart
from benchmarks.networks import engines, zoo
from benchmarks.networks.flops import count_flops
from benchmarks.networks.side_by_side import Race, beside_option
from benchmarks.options import Listed, cores, json_option, number, python, save, target
from benchmarks.search.results import Found, Results, machine

UNTUNED = "untuned"  # in the place of an effort: `--trials 0`
FASTEST = "fastest"  # the faster one of the peers


@dataclass(frozen=True)
class Plan:
    """How networks are built and raced, as the options say. out: the work folder."""

    efforts: list[str]
    beside: list[str]
    threads: list[int]
    batch: int
    precision: str
    out: Path


@dataclass(frozen=True)
class Subject:
    """A network at a batch. file: its model at batch 1; None for a network of the zoo."""

    name: str
    batch: int
    file: Path | None

    def model(self) -> onnx.ModelProto:
        """The network at this batch."""
        made = onnx.load(self.file) if self.file else zoo.NETWORKS[self.name]()
        return made if self.batch == 1 else _of_batch(made, self.batch)


@click.command
@click.argument("folder", type=Path, required=False)
@click.option("--only", type=Listed(), default=[], help="Names of networks.")
@click.option("--efforts", type=Listed(), default=[UNTUNED, "quick"], help="As of `build`.")
@beside_option
@click.option("--threads", type=Listed(int), default=sorted({1, cores()}))
@number("--batch", 1)
@click.option("--precision", default="default", help="As of `build`.")
@click.option("--out", type=Path, default=Path("out/networks"), help="Work folder.")
@json_option
def command(folder: Path | None, only: list[str], file: Path | None, **how: Any) -> None:
    """Build and time every chosen network; print each, failures too."""
    files = {one.stem: one for one in sorted(folder.glob("*.onnx"))} if folder else {}
    names = only or [*zoo.NETWORKS, *files]
    if unknown := set(names) - set(zoo.NETWORKS) - set(files):
        raise click.BadParameter(f"no network {', '.join(sorted(unknown))}")
    plan, here = Plan(**how), machine(target("host"))
    print(f"{here}; peak of one {_peak(plan.out):.0f} GFLOP/s")
    print(_header(plan))
    results = Results(plan.out / "results.jsonl", here)
    found = [_found(Subject(name, plan.batch, files.get(name)), plan, results) for name in names]
    rows = [row for row in found if row]
    print(_means(rows))
    save({"machine": vars(here), "networks": rows}, file)
    sys.exit(0 if all(found) else 1)


def _found(subject: Subject, plan: Plan, results: Results) -> Found | None:
    """The row of a network; None where it fails."""
    about = {"network": subject.name, "batch": subject.batch, "precision": plan.precision}
    about |= {key: getattr(plan, key) for key in ("efforts", "beside", "threads")}
    try:
        row = results.once("network", about, lambda: _row(subject, plan))
    except subprocess.CalledProcessError as error:
        reason = str(error.stderr or "").strip()[-400:]
        print(f"{subject.name:30} failed ({error.returncode}): {reason}", flush=True)
        return None
    print("\n".join(_line(row, Race.from_json(race)) for race in row["races"]), flush=True)
    return row


def _peak(out: Path) -> float:
    """GFLOP/s of one core, measured once in a process of its own, and kept in a file."""
    file = out / "peak.json"
    if not file.exists():
        out.mkdir(parents=True, exist_ok=True)
        save(asdict(measured_apart()), file)
    found = json.loads(file.read_text())
    return float(found["gflops"]) / int(found["cores"])


def _row(subject: Subject, plan: Plan) -> Found:
    folder = (plan.out / f"{subject.name}-b{subject.batch}").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    path, model = folder / "model.onnx", subject.model()
    onnx.save(model, path)
    builds = {effort: _build(path, folder, effort, plan.precision) for effort in plan.efforts}
    libraries = [folder / f"{effort}.so" for effort in plan.efforts]
    memory = {name: engines.resident(name, path, libraries[0]) for name in plan.beside}
    return {
        "network": subject.name,
        "batch": subject.batch,
        "gflop": count_flops(model) / 1e9,
        "peak_gflops": _peak(plan.out),
        "builds": builds,
        "memory_mb": {engines.OURS: engines.resident(engines.OURS, path, libraries[-1]), **memory},
        "races": [_race(path, libraries, plan.beside, threads) for threads in plan.threads],
    }


def _build(model: Path, folder: Path, effort: str, precision: str) -> Found:
    """Facts of one build by the command, in a process of its own."""
    library = folder / f"{effort}.so"
    library.with_suffix(".json").unlink(missing_ok=True)  # so that it is built again
    words = ["-m", "ansor_deploy", "build", str(model), "-o", str(library), "--json"]
    words += ["--registry", str(folder / f"{effort}.db"), "--precision", precision]
    words += ["--trials", "0"] if effort == UNTUNED else ["--effort", effort]
    started = time.perf_counter()
    found = json.loads(python(*words, XDG_CACHE_HOME=str(folder / f"{effort}.cache")))
    return {
        "seconds": time.perf_counter() - started,
        "trials": found["trials"],
        "shipped": found["shipped"],
        "error": found["verify"]["max_rel_err"],
        "file_mb": library.stat().st_size / 1e6,
    }


def _race(model: Path, libraries: list[Path], beside: list[str], threads: int) -> Found:
    words = ["-m", "benchmarks", "side-by-side", str(model), *map(str, libraries)]
    words += ["--threads", str(threads), "--beside", ",".join(beside)]
    found: Found = json.loads(python(*words))
    return found


def _of_batch(model: onnx.ModelProto, batch: int) -> onnx.ModelProto:
    from ansor_deploy.model.onnx.rebatch import rebatched

    inputs = {value.name: value.type.tensor_type.shape.dim for value in model.graph.input}
    old = {name: tuple(one.dim_value for one in dims) for name, dims in inputs.items()}
    new = {name: (batch, *shape[1:]) for name, shape in old.items()}
    made = rebatched(model, old, new)
    for value in made.graph.input:
        value.type.tensor_type.shape.dim[0].dim_value = batch
    return onnx.shape_inference.infer_shapes(made)


def _header(plan: Plan) -> str:
    columns = [f"{effort}/{name}" for effort in plan.efforts for name in _others(plan.beside)]
    ratios = "".join(column.rjust(20) for column in columns)
    return f"{'network':30}batch threads        ms{ratios}  of peak   MB (each)   trials, seconds"


def _others(beside: Sequence[str]) -> list[str]:
    """The columns of ratios: each peer, and the faster one if there are several."""
    return [*beside, *([FASTEST] if len(beside) > 1 else [])]


def _ratios(row: Found, race: Race) -> dict[tuple[str, str], float]:
    """The ratio of each effort to each peer."""
    found: dict[tuple[str, str], float] = {}
    peers = [name for name in race.turns if name not in row["builds"]]
    for effort in row["builds"]:
        over = {peer: race.ratio(effort, peer)[1] for peer in peers}
        found |= {(effort, o): over.get(o, max(over.values())) for o in _others(peers)}
    return found


def _line(row: Found, race: Race) -> str:
    ms = race.milliseconds(list(row["builds"])[-1])
    ratios = "".join(f"{ratio:20.3f}" for ratio in _ratios(row, race).values())
    of_peak = row["gflop"] / ms * 1e3 / row["peak_gflops"] / race.threads
    memory = " ".join(f"{size:.0f}" for size in row["memory_mb"].values())
    spent = "  ".join(f"{one['trials']}, {one['seconds']:.0f}" for one in row["builds"].values())
    begin = f"{row['network']:30}{row['batch']:5}{race.threads:8}{ms:10.3f}"
    return f"{begin}{ratios}{of_peak:9.0%}  {memory:>10}  {spent:>16}"


def _means(rows: Sequence[Found]) -> str:
    """Geometric mean and worst of the ratios, by threads, effort and peer."""
    found: dict[tuple[int, str, str], dict[str, float]] = {}
    for row in rows:
        for race in map(Race.from_json, row["races"]):
            for (effort, other), ratio in _ratios(row, race).items():
                found.setdefault((race.threads, effort, other), {})[row["network"]] = ratio
    return "\n".join(
        f"{threads} threads, {effort} beside {other}: geometric mean "
        f"{statistics.geometric_mean(of.values()):.3f}, worst {max(of.values()):.3f} "
        f"({max(of, key=lambda name: of[name])})"
        for (threads, effort, other), of in sorted(found.items())
    )
