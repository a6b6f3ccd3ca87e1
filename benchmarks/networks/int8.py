"""Quantised networks beside ONNX Runtime on the same file, and beside our own float32 library.

Subjects are NETWORK:WAY, of the ways of `networks/quantised.py`: those of the zoo and the light
models below, and every ONNX file of the folder by QDQ. Each is built untuned by the command, with
an empty registry and an empty cache. Where it is refused as wrong, the reason is printed and a
library that nobody verified is timed. Then both libraries and the engines take turns in one
process for each number of threads, the engines on the quantised file.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import onnx

from benchmarks.networks import filled, light, zoo
from benchmarks.networks.quantised import WAYS, quantised
from benchmarks.networks.side_by_side import Race, beside_option
from benchmarks.options import Listed, cores, json_option, python, save, target
from benchmarks.search.results import Found, machine

SUBJECTS = (
    "mobilenet_v2:qdq", "mobilenet_v2:qoperator", "mobilenet_v2:dynamic", "resnet50:qdq",
    "resnet50:qoperator", "squeezenet:qdq-s8", "squeezenet:qoperator", "light_densenet121:qdq",
    "light_inception_v2:qdq", "light_shufflenet:qdq-s8", "bert_base:dynamic",
)  # fmt: skip
INT8, FLOAT = "int8", "float32"  # our libraries


@dataclass(frozen=True)
class Plan:
    """How subjects are built and raced, by the names of the options. out: the work folder."""

    beside: list[str]
    threads: list[int]
    out: Path


@click.command
@click.argument("names", nargs=-1)
@click.option("--folder", type=Path, help="ONNX files, which may lack their weights.")
@beside_option
@click.option("--threads", type=Listed(int), default=sorted({1, cores()}))
@click.option("--out", type=Path, default=Path("out/int8"), help="Work folder.")
@json_option
def command(names: Sequence[str], folder: Path | None, file: Path | None, **how: Any) -> None:
    """Quantise, build and time the named subjects, else all; print as they come, failures too."""
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
    """What makes each float network, by its name."""
    files = {one.stem: lambda one=one: filled.load(one) for one in _files(folder)}
    lights = {name: lambda name=name: light.load(name) for name in light.NAMES}
    return {**zoo.NETWORKS, **lights, **files}


def _printed(name: str, make: Callable[[], onnx.ModelProto], plan: Plan) -> Found:
    """A subject's row; one that cannot be made, built or run says why, and has no races."""
    try:
        row = _row(name, make, plan)
    except subprocess.CalledProcessError as error:
        row = {"network": name, "refused": _reason(error)}
    except Exception as error:  # noqa: BLE001 - whatever the quantiser cannot do with a network
        row = {"network": name, "refused": f"not quantised: {' '.join(str(error).split())[:300]}"}
    for race in row.get("races", []):
        print(_line(row, Race.from_json(race), plan.beside), flush=True)
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
    seconds, refused = _built(paths[INT8])
    _build(paths[FLOAT], "--no-verify")
    able = [engine for engine in plan.beside if _runs(paths[INT8], engine)]
    return {
        "network": name,
        "seconds": seconds,
        "refused": refused,
        "mb": {one: path.with_suffix(".so").stat().st_size / 1e6 for one, path in paths.items()},
        "model_mb": paths[INT8].stat().st_size / 1e6,
        "races": [_race(paths, able, threads) for threads in plan.threads],
    }


def _built(model: Path) -> tuple[float, str]:
    """(seconds of a build, why its numbers were refused); "" where they were verified.

    Where they were refused, the seconds are those of a build that does not verify: the other one
    has looked for the node that is off.
    """
    began = time.perf_counter()
    try:
        _build(model)
    except subprocess.CalledProcessError as error:
        began = time.perf_counter()
        _build(model, "--no-verify")
        return time.perf_counter() - began, _reason(error)
    return time.perf_counter() - began, ""


def _build(model: Path, *options: str) -> None:
    """Build a library beside a model from nothing, in a process of its own."""
    library, cache = model.with_suffix(".so"), model.with_suffix(".cache")
    shutil.rmtree(cache, ignore_errors=True)
    for old in (library.with_suffix(".json"), model.with_suffix(".db")):
        old.unlink(missing_ok=True)
    words = ["-m", "ansor_deploy", "build", str(model), "-o", str(library), "--trials", "0"]
    words += ["--registry", str(model.with_suffix(".db")), "--beside", "none", "--quiet", *options]
    python(*words, XDG_CACHE_HOME=str(cache))


def _reason(error: subprocess.CalledProcessError) -> str:
    return f"({error.returncode}) {' '.join(str(error.stderr or '').split())[-500:]}"


def _race(paths: dict[str, Path], beside: list[str], threads: int) -> Found:
    libraries = [str(path.with_suffix(".so")) for path in paths.values()]
    words = ["-m", "benchmarks", "side-by-side", str(paths[INT8]), *libraries, "--no-compare"]
    words += ["--threads", str(threads), "--beside", ",".join(beside)]
    found: Found = json.loads(python(*words))
    return found


def _runs(model: Path, engine: str) -> bool:
    """Whether an engine opens a model, in a process of its own: OpenVINO crashes on some."""
    opened = f"open_peer({engine!r}, Path({str(model)!r}), 1)"
    imports = "from pathlib import Path; from ansor_deploy.ship.race.peers import open_peer"
    try:
        python("-c", f"{imports}; {opened}")
    except subprocess.CalledProcessError:
        return False
    return True


def _header(beside: Sequence[str]) -> str:
    ratios = "".join(f"/{name}".rjust(14) for name in (*beside, FLOAT))
    return f"{'network':32}threads        ms{ratios}   build s  verified   MB of its file's"


def _line(row: Found, race: Race, beside: Sequence[str]) -> str:
    ratios = "".join(
        f"{race.ratio(INT8, name)[1]:14.3f}" if name in race.turns else "-".rjust(14)
        for name in (*beside, FLOAT)
    )
    begin = f"{row['network']:32}{race.threads:7}{race.milliseconds(INT8):10.3f}"
    verified = "no" if row["refused"] else "yes"
    size = f"{row['mb'][INT8]:.1f} of {row['model_mb']:.1f}"
    return f"{begin}{ratios}{row['seconds']:10.1f}{verified:>10}   {size}"


def _means(rows: Sequence[Found]) -> str:
    """Geometric means of the ratios, and the worst one, by threads and who is beside."""
    found: dict[tuple[int, str], dict[str, float]] = {}
    for row in rows:
        for race in map(Race.from_json, row["races"]):
            for other in set(race.turns) - {INT8}:
                ratio = race.ratio(INT8, other)[1]
                found.setdefault((race.threads, other), {})[row["network"]] = ratio
    return "\n".join(
        f"{threads} threads beside {other}: geometric mean "
        f"{statistics.geometric_mean(of.values()):.3f} of {len(of)}, worst {max(of.values()):.3f} "
        f"({max(of, key=lambda name: of[name])})"
        for (threads, other), of in sorted(found.items())
    )
