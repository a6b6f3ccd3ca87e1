"""The command line in this process: where what a command does counts, and not that it is started.

A process of its own costs two seconds where it loads TVM; `cli_process` has it, for what depends on
an environment, on signals, or on what is written to the file descriptors.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner

from ansor_deploy.cli import main


def program(folder: Path, *words: Any) -> CompletedProcess[str]:
    """Run a command in a folder to its end. The environment is afterwards as it was."""
    arguments = [str(word) for word in words]
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ):
        patch.chdir(folder)
        result = CliRunner().invoke(main, arguments)
    return CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def answer(folder: Path, *words: Any) -> dict[str, Any]:
    """The one JSON object that a command that succeeds has on stdout."""
    result = program(folder, *words, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
