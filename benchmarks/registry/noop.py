"""The time of an unchanged build beside an empty program, and of a frozen build from nothing.

The model, by default the ResNet-50 that comes with onnx, is tuned for so many trials into a
registry and a lock. Then it is built from the lock alone (frozen), with the registry, and in a
project whose records are a team's. Once these builds are up to date, each is repeated in turns with
an empty program, so that other work on the machine affects all alike. Times are wall-clock times of
whole processes.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from benchmarks.networks.light import FOLDER
from benchmarks.options import json_option, number, save

PROGRAM = (sys.executable, "-m", "ansor_deploy")
EMPTY = "python -c pass"


@dataclass(frozen=True)
class Case:
    """A command. output: the file that it makes; None for the empty program."""

    name: str
    words: tuple[str, ...]
    folder: Path
    output: Path | None = None


@dataclass(frozen=True)
class Times:
    """Median and longest seconds of a command. more: the median beyond the empty program's."""

    name: str
    seconds: float
    longest: float
    more: float

    def __str__(self) -> str:
        return f"{self.name:24}{self.seconds:10.3f}{self.longest:10.3f}{self.more:10.3f}"


@click.command
@click.option("--model", type=Path, default=FOLDER / "light_resnet50.onnx")
@number("--trials", 16)
@number("--rounds", 20)
@click.option("--folder", type=Path, help="Where what was tuned is kept, and found.")
@json_option
def command(model: Path, trials: int, rounds: int, folder: Path | None, file: Path | None) -> None:
    """Prepare, build, build again; print a table."""
    with tempfile.TemporaryDirectory() as scratch:
        cases = prepared(model.resolve(), trials, folder or Path(scratch))
        builds = {case.name: anew(case) for case in cases if case.output}
        times = in_turns(cases, rounds)
    for name, seconds in builds.items():
        print(f"{name + ', anew':24}{seconds:10.3f}")
    print(f"{'unchanged':24}{'median s':>10}{'longest':>10}{'more':>10}")
    for one in times:
        print(one)
    found = {"model": model.name, "anew": builds, "unchanged": [asdict(t) for t in times]}
    save(found, file)


def prepared(model: Path, trials: int, folder: Path) -> list[Case]:
    """The commands that are compared; the empty program is the first."""
    registry, lock, team = (folder / name for name in ("registry.db", "records.lock", "team.jsonl"))
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    (project / "ansor-deploy.toml").write_text(f'registry = "own.db"\nteam = "{team}"\n')
    tune = ("tune", str(model), "--registry", str(registry), "--trials", str(trials))
    run((*PROGRAM, *tune, "--lock", str(lock)), folder)
    run((*PROGRAM, "registry", "export", str(team), "--registry", str(registry)), folder)
    build = (*PROGRAM, "build", str(model), "--trials", "0")
    return [
        Case(EMPTY, (sys.executable, "-c", "pass"), folder),
        _built("frozen", (*build, "--lock", str(lock), "--frozen"), folder),
        _built("registry", (*build, "--registry", str(registry)), folder),
        _built("team", build, project),
    ]


def _built(name: str, words: Sequence[str], folder: Path) -> Case:
    output = folder / f"{name}.so"
    return Case(name, (*words, "-o", str(output), "--depfile", f"{output}.d"), folder, output)


def anew(case: Case) -> float:
    """The seconds of a build without an output; a second build then leaves all up to date."""
    if case.output:
        case.output.unlink(missing_ok=True)
    seconds = run(case.words, case.folder)
    run(case.words, case.folder)
    return seconds


def in_turns(cases: Sequence[Case], rounds: int) -> list[Times]:
    """Run the commands in turns, so many rounds; SystemExit where an output is made again."""
    made = {case: case.output.stat().st_mtime_ns for case in cases if case.output}
    taken: dict[Case, list[float]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case, seconds in taken.items():
            seconds.append(run(case.words, case.folder))
    for case, mtime in made.items():
        if case.output and case.output.stat().st_mtime_ns != mtime:
            raise SystemExit(f"{case.name}: the output was made again")
    medians = {case: statistics.median(seconds) for case, seconds in taken.items()}
    empty = medians[cases[0]]
    return [Times(c.name, medians[c], max(taken[c]), medians[c] - empty) for c in cases]


def run(words: Sequence[str], folder: Path) -> float:
    """The seconds of a command in a folder, which is also its home."""
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "MAKEFLAGS")}
    env |= {"HOME": str(folder), "XDG_CACHE_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    began = time.perf_counter()
    result = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if result.returncode:
        raise SystemExit(result.stderr)
    return seconds
