"""Quantised networks beside ONNX Runtime on the same file, and beside our own float32 library.

Subjects are NETWORK:WAY, with a way of `networks/quantised.py`: the networks of the zoo and the
light models below, and every ONNX file of the folder by QDQ. Each is built untuned by the command,
with an empty registry and an empty cache. Where the build refuses its outputs as wrong, the reason
is printed, and a library without verification is timed. Our library and each engine run once in a
process of their own, which shows their memory; an engine that refuses the file there, or crashes,
is left out. Then both libraries and the engines take turns in one process for each number of
threads, the engines on the quantised file.

Results stay in the work folder, and are not computed again: a subject's built.json, and a file for
its race with each number of threads. A removed file is made again. So all subjects may be built
first (`--no-race`), beside other work, and raced later on a quiet machine.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import onnx

from benchmarks.networks import engines, filled, light, zoo
from benchmarks.networks.quantised import WAYS, quantised
from benchmarks.networks.side_by_side import Race, beside_option
from benchmarks.options import (
    Listed,
    cores,
    cpu_seconds,
    json_option,
    python,
    save,
    target,
    untuned,
)
from benchmarks.search.results import Found, machine

SUBJECTS = (
    "mobilenet_v2:qdq", "mobilenet_v2:qoperator", "mobilenet_v2:dynamic", "mobilenet_v2:pt2e",
    "resnet50:qdq", "resnet50:qdq-tensor", "resnet50:qoperator", "resnet50:pt2e",
    "squeezenet:qdq-s8", "squeezenet:qoperator", "light_densenet121:qdq", "light_inception_v1:qdq",
    "light_inception_v2:qdq", "light_shufflenet:qdq-s8", "light_vgg19:qdq", "bert_base:qdq",
    "bert_base:dynamic", "bert_base:blocks",
)  # fmt: skip
INT8, FLOAT = "int8", "float32"  # our libraries


@dataclass(frozen=True)
class Plan:
    """How subjects are built and raced, as the options say. out: the work folder."""

    beside: list[str]
    threads: list[int]
    race: bool
    out: Path


@click.command
@click.argument("names", nargs=-1)
@click.option("--folder", type=Path, help="ONNX files, which may lack their weights.")
@beside_option
@click.option("--threads", type=Listed(int), default=sorted({1, cores()}))
@click.option("--race/--no-race", default=True, help="Or build them alone.")
@click.option("--out", type=Path, default=Path("out/int8"), help="Work folder.")
@json_option
def command(names: Sequence[str], folder: Path | None, file: Path | None, **how: Any) -> None:
    """Quantise, build and time the named subjects, by default all; print each, failures too."""
    makers, plan = _makers(folder), Plan(**how)
    chosen = names or (*SUBJECTS, *(f"{one.stem}:qdq" for one in _files(folder)))
    for name in chosen:
        network, _, way = name.partition(":")
        if network not in makers or way not in WAYS:
            raise click.BadParameter(f"no {name}; it is NETWORK:WAY, with a way of {list(WAYS)}")
    here = machine(target("host"))
    print(f"{here}\n{_header(plan.beside)}", flush=True)
    rows = [_printed(name, makers[name.partition(":")[0]], plan) for name in chosen]
    print(_means([row for row in rows if "races" in row]))
    save({"machine": vars(here), "networks": rows}, file)
    sys.exit(0 if all(not row["refused"] for row in rows) else 1)


def _files(folder: Path | None) -> list[Path]:
    return sorted(folder.glob("*.onnx")) if folder else []


def _makers(folder: Path | None) -> dict[str, Callable[[], onnx.ModelProto]]:
    """Functions that make the float networks, by name."""
    files = {one.stem: lambda one=one: filled.load(one) for one in _files(folder)}
    lights = {name: lambda name=name: light.load(name) for name in light.NAMES}
    return {**zoo.NETWORKS, **lights, **files}


def _printed(name: str, make: Callable[[], onnx.ModelProto], plan: Plan) -> Found:
    """A subject's row; one that cannot be made, built or run has the reason, and no races."""
    try:
        row = _row(name, make, plan)
    except subprocess.CalledProcessError as error:
        row = {"network": name, "refused": _reason(error)}
    except Exception as error:  # noqa: BLE001 - any failure of the quantiser on a network
        row = {"network": name, "refused": f"not quantised: {' '.join(str(error).split())[:300]}"}
    for race in row.get("races", []):
        print(_line(row, Race.from_json(race), plan.beside), flush=True)
    if not plan.race and "seconds" in row:
        print(f"{name:32} {_facts(row)}", flush=True)
    if row["refused"]:
        print(f"{name:32} refused: {row['refused']}", flush=True)
    return row


def _row(name: str, make: Callable[[], onnx.ModelProto], plan: Plan) -> Found:
    folder = (plan.out / name.replace(":", ".")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    paths = {INT8: folder / f"{INT8}.onnx", FLOAT: folder / f"{FLOAT}.onnx"}
    if not paths[INT8].exists():
        model = make()
        onnx.save(model, paths[FLOAT])
        onnx.save(quantised(model, name.partition(":")[2]), paths[INT8])
    facts = _kept(folder / "built.json", lambda: _built(paths, plan.beside))
    able = [engine for engine in plan.beside if facts["memory_mb"][engine]]
    races = [
        _kept(folder / f"race-{threads}.json", partial(_race, paths, able, threads))
        for threads in plan.threads
        if plan.race
    ]
    return {"network": name, **facts, "races": races}


def _kept(file: Path, find: Callable[[], Found]) -> Found:
    """The result of a step from its file; if there is none, do the step and write the file."""
    if not file.exists():
        save(find(), file)
    found: Found = json.loads(file.read_text())
    return found


def _built(paths: dict[str, Path], beside: list[str]) -> Found:
    """Build both libraries, and measure everyone's memory; earlier races are removed."""
    for old in paths[INT8].parent.glob("race-*.json"):
        old.unlink()
    facts = _verified(paths[INT8])
    _build(paths[FLOAT], "--no-verify")
    return {
        **facts,
        "mb": {one: path.with_suffix(".so").stat().st_size / 1e6 for one, path in paths.items()},
        "model_mb": paths[INT8].stat().st_size / 1e6,
        "memory_mb": {name: _resident(name, paths[INT8]) for name in (engines.OURS, *beside)},
    }


def _verified(model: Path) -> Found:
    """The wall-clock and CPU seconds of a build, and why its outputs were refused, or "".

    If they were refused, the seconds are those of a build without verification: the first one has
    also searched for the node with the error.
    """
    try:
        return {**_build(model), "refused": ""}
    except subprocess.CalledProcessError as error:
        return {**_build(model, "--no-verify"), "refused": _reason(error)}


def _build(model: Path, *options: str) -> Found:
    """The seconds of building a library beside a model without any cache, in a new process."""
    cache = model.with_suffix(".cache")
    shutil.rmtree(cache, ignore_errors=True)
    for old in (".json", ".db"):
        model.with_suffix(old).unlink(missing_ok=True)
    began, spent = time.perf_counter(), cpu_seconds()
    untuned(model, *options, XDG_CACHE_HOME=str(cache))
    return {"seconds": time.perf_counter() - began, "cpu_seconds": cpu_seconds() - spent}


def _reason(error: subprocess.CalledProcessError) -> str:
    return f"({error.returncode}) {' '.join(str(error.stderr or '').split())[-500:]}"


def _race(paths: dict[str, Path], beside: list[str], threads: int) -> Found:
    libraries = [str(path.with_suffix(".so")) for path in paths.values()]
    words = ["-m", "benchmarks", "side-by-side", str(paths[INT8]), *libraries, "--no-compare"]
    words += ["--threads", str(threads), "--beside", ",".join(beside)]
    found: Found = json.loads(python(*words))
    return found


def _resident(engine: str, model: Path) -> float | None:
    """The peak memory, in MB, of a process that runs a model once; None where it fails."""
    try:
        return engines.resident(engine, model, model.with_suffix(".so"))
    except subprocess.CalledProcessError:
        return None  # refused, or crashed, as OpenVINO does on some


def _header(beside: Sequence[str]) -> str:
    ratios = "".join(f"/{name}".rjust(14) for name in (*beside, FLOAT))
    return f"{'network':32}threads        ms{ratios}   build s (of processors), MB, MB resident"


def _line(row: Found, race: Race, beside: Sequence[str]) -> str:
    ratios = "".join(
        f"{race.ratio(INT8, name)[1]:14.3f}" if name in race.turns else "-".rjust(14)
        for name in (*beside, FLOAT)
    )
    begin = f"{row['network']:32}{race.threads:7}{race.milliseconds(INT8):10.3f}"
    return f"{begin}{ratios}   {_facts(row)}"


def _facts(row: Found) -> str:
    """How a subject's library was built, its size, and the memory of each engine."""
    seconds = f"{row['seconds']:.1f} s ({row['cpu_seconds']:.1f})"
    verified = "refused" if row["refused"] else "verified"
    size = f"{row['mb'][INT8]:.1f} MB of a file's {row['model_mb']:.1f}"
    memory = " ".join(f"{one:.0f}" if one else "-" for one in row["memory_mb"].values())
    return f"{verified} in {seconds}, {size}, resident {memory}"


def _means(rows: Sequence[Found]) -> str:
    """Geometric means and the worst of the ratios: of time, of bytes, of memory."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        for what, ratio in _ratios(row):
            found.setdefault(what, {})[row["network"]] = ratio
    return "\n".join(
        f"{what}: geometric mean {statistics.geometric_mean(of.values()):.3f} of {len(of)}, "
        f"worst {max(of.values()):.3f} ({max(of, key=lambda name: of[name])})"
        for what, of in sorted(found.items())
    )


def _ratios(row: Found) -> Iterator[tuple[str, float]]:
    """Each comparison of a subject, in words, with the ratio of ours to the other's."""
    for race in map(Race.from_json, row["races"]):
        for other in set(race.turns) - {INT8}:
            yield f"{race.threads} threads beside {other}", race.ratio(INT8, other)[1]
    yield "bytes beside the model's file", row["mb"][INT8] / row["model_mb"]
    memory = dict(row["memory_mb"])
    ours = memory.pop(engines.OURS)
    yield from ((f"memory beside {name}", ours / one) for name, one in memory.items() if one)
