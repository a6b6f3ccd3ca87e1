"""The contracts of the layers hold, and an import that goes up breaks them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINT = "from importlinter.cli import lint_imports_command as lint; lint()"


@pytest.fixture
def copy(tmp_path):
    """The package and its contracts, to be edited."""
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "ansor_deploy", tmp_path / "ansor_deploy", ignore=without)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder):
    command = [sys.executable, "-c", LINT, "--no-cache"]
    return subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


EDGES = {
    "data and imports walk downwards": ("system/child.py", "from ansor_deploy import pipeline"),
    "no circle of files": ("registry/record.py", "from . import store"),
    "TVM has one door, and its runtime another": ("tune/queue.py", "import tvm"),
    "XGBoost stays in the search's room": ("model/tasks.py", "import xgboost"),
}


def test_an_import_that_goes_up_breaks_its_contract(copy):
    result = lint(copy)
    assert result.returncode == 0, result.stdout
    for module, line in EDGES.values():
        with (copy / "ansor_deploy" / module).open("a") as file:
            file.write(f"\n{line}\n")
    result = lint(copy)
    assert result.returncode == 1
    told = " ".join(result.stdout.split())
    assert all(f"{contract} BROKEN" in told for contract in EDGES)
