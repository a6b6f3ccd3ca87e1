"""Running commands of the tool, and what they leave in their folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import onnx

from ansor_deploy.registry.store import Registry
from helpers.cli_process import PROGRAM
from helpers.graphs import model, node
from helpers.processes import MARK

TARGET = 'extends = "host"\ncores = 1\n'
# The program with less patience for a lost device; everything else is unchanged.
_PATIENCE = "from ansor_deploy.measure import sites; sites.RETURN_SECONDS = (0, 1, 2); "
HASTY = [sys.executable, "-c", f"{_PATIENCE}from ansor_deploy.cli import main; main()"]
COMMAND = ("build", "net.onnx", "-o", "out/net.so", "--registry", "r.db", "--effort", "quick")


class Run:
    """A running command of the tool in a folder; its stderr is collected."""

    def __init__(self, folder: Path, *words: str, program: list[str] = PROGRAM) -> None:
        self.mark, temporary = str(folder), folder / "tmp"
        temporary.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [*program, *words],
            cwd=folder,
            env={**os.environ, MARK: self.mark, "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.answer = ""  # stdout, once the command has ended
        self._told: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def told(self) -> str:
        """Stderr so far, as one line."""
        return " ".join("".join(self._told).split())

    def until(self, pattern: str, patience: float = 120) -> re.Match[str]:
        """Wait for a match in stderr; fails if the command ends without one."""
        deadline = time.monotonic() + patience
        while not (found := re.search(pattern, self.told)):
            assert self.process.poll() is None, self.told
            assert time.monotonic() < deadline, self.told
            time.sleep(0.02)
        return found

    def end(self, patience: float = 300) -> int:
        """Wait for the command's end; returns its exit code."""
        try:
            code = self.process.wait(patience)
            self.answer = self.process.stdout.read()
            return code
        finally:
            self.close()

    def close(self) -> None:
        """Kill the command."""
        self.process.kill()
        self._reader.join()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()

    def _read(self) -> None:
        self._told.extend(self.process.stderr)


def workplace(folder: Path) -> Path:
    """A folder with a model of three small tasks, and a target with one core."""
    folder.mkdir()
    nodes = [
        node("ReduceMax", "x", "a", axes=[1], keepdims=1),
        node("Softmax", "x", "b", axis=1),
        node("ReduceMean", "x", "c", axes=[0], keepdims=1),
    ]
    onnx.save(model(nodes, {"x": (64, 96)}, outputs=("a", "b", "c")), folder / "net.onnx")
    (folder / "board.toml").write_text(TARGET)
    return folder


def measured(folder: Path) -> int:
    """The number of measurements in the folder's registry; fails if that is damaged."""
    with Registry.open(folder / "r.db", write=False) as registry:
        assert registry.verify() == []
        return int(registry.stats()["measurements"])
