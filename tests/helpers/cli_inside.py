"""Run the command line in this process, for tests of what a command does, not of its process.

A new process takes two seconds if it loads TVM. `cli_process` starts one, for tests that depend on
an environment, on signals, or on output to file descriptors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner

from ansor_deploy.cli import main
from helpers import cli_process


def program(folder: Path, *words: Any, **options: Any) -> CompletedProcess[str]:
    """Run a command in a folder to its end.

    options: of subprocess.run; a command with options runs in a new process.
    """
    if options:
        return cli_process.program(folder, *words, **options)
    arguments = [str(word) for word in words]
    with _process_kept(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(main, arguments)
    return CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


@contextmanager
def _process_kept() -> Iterator[None]:
    """Restore the environment and the CPU affinity, which TVM's thread pool narrows."""
    cores = os.sched_getaffinity(0)
    try:
        with mock.patch.dict(os.environ):
            yield
    finally:
        os.sched_setaffinity(0, cores)


def answer(folder: Path, *words: Any, **options: Any) -> dict[str, Any]:
    """The JSON object that a successful command prints on stdout."""
    result = program(folder, *words, "--json", **options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
