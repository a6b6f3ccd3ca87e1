"""What a model costs a build in which nothing has changed.

    python benchmarks/hooks.py [--rounds 31] [--json FILE]

For each build system that is installed: a project with one program in C, and the same with the
examples' model beside it. Both are built, then again and again, in turns, with nothing to do. The
medians are of the whole command's wall clock. Bazel is Debian's, its server running and without
network, as the tests set it up.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import ansor_deploy
from ansor_deploy.integrations import hook_folder

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "classifier"

SOURCES = ("stripes.onnx", "stripes.lock", "avx2.toml")


@dataclass(frozen=True)
class BuildSystem:
    """How to build a project.

    file: that describes it. plain: what it says of the program; model: what it says besides of the
    model. configure: a command before the first build, if any.
    """

    name: str
    file: str
    plain: str
    model: str
    build: tuple[str, ...]
    configure: tuple[str, ...] = ()
    programs: tuple[str, ...] = field(default=("cc",))


MAKE_PLAIN = """\
all: program
program: program.c
\tcc -o $@ $<
"""
MAKE_MODEL = """\
include $(shell ansor-deploy hooks make)/ansor_deploy.mk
$(eval $(call ansor_deploy_model,stripes,stripes.onnx,avx2.toml,stripes.lock))
all: $(stripes_LIBRARY)
"""
CMAKE_PLAIN = """\
cmake_minimum_required(VERSION 3.20)
project(bench LANGUAGES C)
add_executable(program program.c)
"""
CMAKE_MODEL = f"""\
find_package(AnsorDeploy CONFIG REQUIRED PATHS "{hook_folder("cmake")}")
ansor_deploy_model(NAME stripes MODEL stripes.onnx TARGET avx2.toml LOCK stripes.lock)
"""
NINJA_PLAIN = """\
rule cc
  command = cc -o $out $in
build program: cc program.c
"""
NINJA_MODEL = """\
rule model
  command = ansor-deploy build $in -o $out --lock stripes.lock --frozen --target avx2.toml $
    --depfile $out.d
  depfile = $out.d
  restat = 1
build stripes.so: model stripes.onnx
"""


def _cmake(name: str, generator: str, program: str) -> BuildSystem:
    return BuildSystem(
        name=name,
        file="CMakeLists.txt",
        plain=CMAKE_PLAIN,
        model=CMAKE_MODEL,
        build=("cmake", "--build", "build"),
        configure=("cmake", "-B", "build", "-G", generator),
        programs=("cc", "cmake", program),
    )


BUILD_SYSTEMS = (
    BuildSystem("make", "Makefile", MAKE_PLAIN, MAKE_MODEL, ("make",)),
    BuildSystem("ninja", "build.ninja", NINJA_PLAIN, NINJA_MODEL, ("ninja",)),
    _cmake("cmake, ninja", "Ninja", "ninja"),
    _cmake("cmake, make", "Unix Makefiles", "make"),
)


BAZEL_PLAIN = 'cc_binary(name = "program", srcs = ["program.c"])\n'
BAZEL_MODEL = """\
load("@ansor_deploy//:defs.bzl", "ansor_model")
ansor_model(
    name = "stripes", model = "stripes.onnx", lock = "stripes.lock", descriptor = "avx2.toml"
)
"""
BAZEL_WORKSPACE = f"""\
local_repository(name = "ansor_deploy", path = "{hook_folder("bazel")}")
load("@ansor_deploy//:repositories.bzl", "ansor_deploy_repositories")
ansor_deploy_repositories()
"""


@dataclass(frozen=True)
class Cost:
    """Median milliseconds of a build with nothing to do: of the program alone, and with a model."""

    name: str
    plain_ms: float
    model_ms: float

    def __str__(self) -> str:
        more = self.model_ms - self.plain_ms
        return f"{self.name:14}{self.plain_ms:10.1f}{self.model_ms:12.1f}{more:10.1f}"


def project(system: BuildSystem, folder: Path, *, model: bool) -> Path:
    """Write a project and build it."""
    folder.mkdir()
    (folder / "program.c").write_text("int main(void) { return 0; }\n")
    (folder / system.file).write_text(system.plain + (system.model if model else ""))
    for name in SOURCES if model else ():
        shutil.copy(EXAMPLE / name, folder)
    for command in (system.configure, system.build):
        if command:
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder


def measure(system: BuildSystem, folder: Path, rounds: int) -> Cost:
    """Build both projects, then time builds of them in turns."""
    place = folder / system.file.partition(".")[0] / system.name
    place.mkdir(parents=True)
    both = [project(system, place / str(model), model=model) for model in (False, True)]
    return _in_turns(system.name, [(system.build, where) for where in both], rounds)


def _in_turns(name: str, builds: Sequence[tuple[Sequence[str], Path]], rounds: int) -> Cost:
    """What the builds of the two projects take: command and folder of each."""
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for which, (command, where) in zip(times, builds, strict=True):
            which.append(_milliseconds(command, where))
    plain, model = (statistics.median(which) for which in times)
    return Cost(name, plain, model)


def measure_bazel(folder: Path, rounds: int, tool: Path) -> Cost | None:
    """As `measure`, with a server for each of the two workspaces; None without Bazel."""
    sys.path.insert(0, str(ROOT / "tests" / "integrations"))
    from helpers.debian_bazel import Bazel, is_installed  # type: ignore[import-not-found]

    if not is_installed():
        return None
    bazel = Bazel(folder / "bazel")
    both = [folder / "bazel" / name for name in ("plain", "model")]
    try:
        for where, model in zip(both, (False, True), strict=True):
            _workspace(where, model=model)
            bazel.prepare(where, folder / f"base-{where.name}", tool)
            subprocess.run(
                bazel.command(where, "build", "//..."), cwd=where, check=True, capture_output=True
            )
        return _in_turns("bazel", [(bazel.command(w, "build", "//..."), w) for w in both], rounds)
    finally:
        bazel.shut_down()


def _workspace(folder: Path, *, model: bool) -> None:
    folder.mkdir(parents=True)
    (folder / "program.c").write_text("int main(void) { return 0; }\n")
    (folder / "WORKSPACE").write_text(BAZEL_WORKSPACE if model else "")
    (folder / "BUILD").write_text((BAZEL_MODEL if model else "") + BAZEL_PLAIN)
    for name in SOURCES if model else ():
        shutil.copy(EXAMPLE / name, folder)


def main() -> None:
    """Measure each, print, and with --json also write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    args = parser.parse_args()
    print(f"{'':14}{'plain ms':>10}{'+ model ms':>12}{'more ms':>10}")
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        tool = _put_on_path(Path(folder))
        for system in installed():
            costs.append(measure(system, Path(folder), args.rounds))
            print(costs[-1], flush=True)
        if (cost := measure_bazel(Path(folder), args.rounds, tool)) is not None:
            costs.append(cost)
            print(cost, flush=True)
    if args.json:
        args.json.write_text(json.dumps([asdict(cost) for cost in costs], indent=2) + "\n")


def installed() -> Iterator[BuildSystem]:
    """The build systems whose programs are on the path."""
    for system in BUILD_SYSTEMS:
        if all(shutil.which(name) for name in (system.build[0], *system.programs)):
            yield system
        else:
            print(f"{system.name:14} is not installed")


def _milliseconds(command: Sequence[str], folder: Path) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (time.perf_counter() - began) * 1e3


def _put_on_path(folder: Path) -> Path:
    """An `ansor-deploy` of this very Python and package; the program."""
    program = folder / "bin" / "ansor-deploy"
    program.parent.mkdir()
    root = Path(ansor_deploy.__file__).parents[1]
    words = f"PYTHONPATH={shlex.quote(str(root))} exec {shlex.quote(sys.executable)}"
    program.write_text(f'#!/bin/sh\n{words} -m ansor_deploy "$@"\n')
    program.chmod(0o755)
    os.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    return program


if __name__ == "__main__":
    main()
