"""A project with models, its build system, and the results of its builds."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import ansor_deploy

OBSERVED = Path(__file__).with_name("observed.py")
SUFFIXES = (".so", ".h", ".json", ".intoto.json")


class Tool(ABC):
    """A build system; a test module has a subclass for each.

    programs: those that it needs on the PATH. compares: "times" if it calls ansor-deploy whenever
    an input is newer, "content" if it finds out by itself that nothing has changed.
    """

    programs: tuple[str, ...] = ()
    compares = "times"

    @abstractmethod
    def describe(self, project: Project) -> None:
        """Write the build system's files, before a project's first build."""

    @abstractmethod
    def command(self, project: Project, jobs: int) -> list[str]:
        """The command that builds all models of a project, in its folder of sources."""

    def output(self, project: Project, name: str) -> Path:
        """The path of a model's library, beside which its other outputs lie."""
        return project.built / f"{name}.so"

    def environment(self, project: Project) -> dict[str, str]:
        """The environment of a build."""
        return {**os.environ, "PATH": f"{project.program.parent}:{os.environ['PATH']}"}


@dataclass(frozen=True)
class Call:
    """One run of `ansor-deploy build`.

    code: None if it was killed. heavy: packages that it loaded. moves: of outputs into place.
    """

    model: str
    code: int | None = None
    heavy: tuple[str, ...] = ()
    moves: int = 0


@dataclass(frozen=True)
class Build:
    """The results of a run of the build system.

    code: its exit code. said: its output. calls: of ansor-deploy, by the model's name. written:
    models with a replaced output file; changed: models with an output whose bytes changed.
    """

    code: int
    said: str
    calls: dict[str, Call]
    written: set[str]
    changed: set[str]

    @property
    def codes(self) -> dict[str, int | None]:
        """The exit code of ansor-deploy for each model that it was called for."""
        return {name: call.code for name, call in self.calls.items()}


@dataclass
class Project:
    """A folder of sources, another for outputs, and a program `ansor-deploy`.

    models: the model's file, by the name of its library. All models use the lock `lock`, the
    target's descriptor `board` and the rule `rule`; these lie in `source`, like the models.
    """

    tool: Tool
    source: Path
    built: Path
    program: Path
    models: dict[str, str] = field(default_factory=lambda: {"net": "net.onnx"})

    def __post_init__(self) -> None:
        self.lock = self.source / "models.lock"
        self.board = self.source / "board.toml"
        self.rule = self.source / "rule.py"

    def build(self, jobs: int = 1, preexec_fn: Callable[[], None] | None = None) -> Build:
        """Run the build system to its end, in a new session."""
        before, noted = self._outputs(), len(self._notes())
        done = subprocess.run(
            self.tool.command(self, jobs),
            cwd=self.source,
            env=self.tool.environment(self),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            start_new_session=True,
            preexec_fn=preexec_fn,
        )
        after = self._outputs()
        print(done.stdout)
        return Build(
            done.returncode,
            done.stdout,
            _calls(self._notes()[noted:]),
            {name for name in self.models if _differ(before[name], after[name], 0)},
            {name for name in self.models if _differ(before[name], after[name], 1)},
        )

    def kill_at(self, move: int) -> None:
        """Let builds die by SIGKILL before their n-th move of an output into place; 0: never."""
        file = self.program.parent / "kill"
        if move:
            file.write_text(f"{move} {os.getsid(0)}")
        else:
            file.unlink(missing_ok=True)

    def output(self, name: str = "net", suffix: str = ".so") -> Path:
        """The path of an output of a build."""
        return self.tool.output(self, name).with_suffix(suffix)

    def manifest(self, name: str = "net") -> dict:
        """The manifest of a library."""
        return json.loads(self.output(name, ".json").read_text())

    def contents(self, name: str = "net") -> dict[str, bytes]:
        """The contents of the outputs that exist, by suffix."""
        made = {suffix: self.output(name, suffix) for suffix in SUFFIXES}
        return {suffix: path.read_bytes() for suffix, path in made.items() if path.is_file()}

    def _outputs(self) -> dict[str, list[tuple[int, bytes] | None]]:
        return {name: [_file(self.output(name, s)) for s in SUFFIXES] for name in self.models}

    def _notes(self) -> list[dict]:
        file = self.program.parent / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@dataclass(frozen=True)
class Ready:
    """A project after its first build, and a copy of its folders at that time."""

    project: Project
    first: Build
    copy: Path

    def again(self) -> Project:
        """The project as it was after the first build, including file times."""
        for folder in (self.project.source, self.project.built):
            shutil.rmtree(folder)
            shutil.copytree(self.copy / folder.name, folder, symlinks=True)
        self.project.kill_at(0)
        return self.project


def observed_program(folder: Path) -> Path:
    """A program `ansor-deploy` in a folder, which notes its calls there."""
    folder.mkdir(parents=True)
    program = folder / "ansor-deploy"
    root = Path(ansor_deploy.__file__).parents[1]
    words = map(shlex.quote, [sys.executable, str(OBSERVED), str(folder)])
    lines = (
        "#!/bin/sh",
        f"export PYTHONPATH={shlex.quote(str(root))}",
        f'exec {" ".join(words)} "$@"',
    )
    program.write_text("\n".join(lines) + "\n")
    program.chmod(0o755)
    return program


def require(programs: tuple[str, ...]) -> None:
    """Skip the test where a program is missing."""
    if missing := [name for name in programs if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")


def _file(path: Path) -> tuple[int, bytes] | None:
    return (path.stat().st_ino, path.read_bytes()) if path.is_file() else None


def _differ(before: list, after: list, part: int) -> bool:
    pairs = zip(before, after, strict=True)
    return any((a and a[part]) != (b and b[part]) for a, b in pairs)


def _calls(notes: list[dict]) -> dict[str, Call]:
    """The calls of `build`, by the model's name."""
    ends = {note["call"]: note for note in notes if "code" in note}
    calls = {}
    for note in notes:
        words = note.get("words", [])
        if words[:1] == ["build"]:
            name = Path(words[words.index("-o") + 1]).stem
            assert name not in calls, f"{name} was built twice"
            end = ends.get(note["call"], {"code": None, "heavy": (), "moves": 0})
            calls[name] = Call(name, end["code"], tuple(end["heavy"]), end["moves"])
    return calls
