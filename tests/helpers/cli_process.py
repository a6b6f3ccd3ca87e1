"""Run the command line as a user does: in a new process, in a folder."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-m", "ansor_deploy"]

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE = 1


def program(folder: Path, *words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder to its end."""
    return subprocess.run(
        [*PROGRAM, *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def answer(folder: Path, *words: Any, **options: Any) -> dict[str, Any]:
    """The JSON object that a successful command prints on stdout."""
    result = program(folder, *words, "--json", **options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def refused(result: subprocess.CompletedProcess[str], code: int, *says: str) -> None:
    """The command failed as expected: with one message, a hint and the exit code."""
    assert result.returncode == code, result.stderr
    told = result.stderr[re.search(r"^.*: error: ", result.stderr, re.MULTILINE).start() :]
    assert "\n  hint: " in told
    assert "Traceback" not in result.stderr
    for words in says:
        assert words in told


def everything(folder: Path) -> dict[str, bytes]:
    """All files below a folder, hidden ones too; folders have no content of their own."""
    paths = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): b"" if p.is_dir() else p.read_bytes() for p in paths}


def heed_permissions() -> None:
    """Make file permissions hold for root, too; for a child process that is about to start."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0)
