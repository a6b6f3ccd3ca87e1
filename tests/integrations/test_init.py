"""`init` in a new folder ends in a program that runs the model, and leaves an old one as it is."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest
from helpers.cli_inside import program
from helpers.cli_process import everything
from helpers.graphs import model, node, randn
from helpers.hooked import observed_program, require

PROGRAMS = {
    "make": ("make", "cc"),
    "cmake": ("cmake", "cc", "make"),
    "ninja": ("ninja", "cc", "pkg-config"),
}
BUILDS = {"make": "make", "cmake": "cmake -B build && cmake --build build", "ninja": "ninja"}
MAINS = {
    "make": ("Makefile", "all: build/models/net.so\n"),
    "cmake": ("CMakeLists.txt", "cmake_minimum_required(VERSION 3.20)\nproject(old LANGUAGES C)\n"),
    "ninja": ("build.ninja", "builddir = build\n"),
}


@dataclass(frozen=True)
class Folder:
    """A user's folder with a model. tool: the program `ansor-deploy` of its shells."""

    path: Path
    tool: Path

    def init(self, *words: object) -> str:
        done = program(self.path, "init", "--yes", "--registry", self.tool.parent / "r.db", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shell(self, line: str) -> str:
        environment = {**os.environ, "PATH": f"{self.tool.parent}:{os.environ['PATH']}"}
        done = subprocess.run(  # noqa: S602 - a user's shell
            line,
            shell=True,
            cwd=self.path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path / "project", observed_program(tmp_path / "bin"))
    made.path.mkdir()
    onnx.save(net(), made.path / "net.onnx")
    return made


def net(rows: int | str = 2) -> onnx.ModelProto:
    """On zeros it gives what is added: 1, 2 and 3."""
    constants = {"w": randn(0, 4, 3), "b": randn(1, 3) * 0 + [1, 2, 3]}
    constants["b"] = constants["b"].astype("float32")
    return model([node("Gemm", "x w b", "y")], {"x": (rows, 4)}, ["y"], constants)


def assert_runs(said: str) -> None:
    lines = [line for line in said.splitlines() if line.startswith("out_y[")]
    assert [line.split(" = ")[1] for line in lines] == ["1", "2", "3", "1"]


def next_command(said: str) -> str:
    return next(line for line in said.splitlines() if line.startswith("next: ")).partition(": ")[2]


@pytest.mark.parametrize("system", PROGRAMS)
def test_a_new_folder_builds_and_runs(folder, system):
    require(PROGRAMS[system])
    said = folder.init("--build", system)
    assert_runs(folder.shell(next_command(said)))
    before = everything(folder.path)
    assert "nothing to write" in folder.init()  # and it knows by now which build system
    assert everything(folder.path) == before


def test_bazel_builds_and_runs(folder, bazel):
    said = folder.init("--build", "bazel")
    bazel.prepare(folder.path, folder.tool.parent / "base", folder.tool)
    assert next_command(said) == "bazel run //:app"
    done = bazel.run(folder.path, "run", "//:app")
    assert done.returncode == 0, done.stderr
    assert_runs(done.stdout)
    assert "nothing to write" in folder.init()


@pytest.mark.parametrize("system", PROGRAMS)
def test_an_old_build_is_left_as_it_is_and_gains_a_line(folder, system):
    require(PROGRAMS[system])
    name, text = MAINS[system]
    main = folder.path / name
    main.write_text(text)
    said = folder.init()
    assert main.read_text() == text
    assert not (folder.path / "app.c").exists()
    told = said[said.index(f"add to {name}:\n") :].splitlines()[1]
    main.write_text(text + told.strip() + "\n")
    assert "add to" not in folder.init()
    folder.shell(BUILDS[system])
    assert len(list((folder.path / "build").rglob("net.so"))) == 1


def test_shapes_are_given_and_tuning_takes_them(folder):
    require(PROGRAMS["make"])
    onnx.save(net("rows"), folder.path / "net.onnx")
    folder.init("--input-shape", "x=2,4", "--input-shape", "x=3,4")
    assert_runs(folder.shell("make && ./app"))
    folder.shell("make tune ANSOR_DEPLOY_TUNE_FLAGS='--trials 2 --registry tuned.db'")
    assert '"record"' in (folder.path / "records.lock").read_text()
    assert_runs(folder.shell("make && ./app"))
