"""Measurement packs, measured by a Python without any of our packages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

PYTHON = Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}").resolve()


def measured(
    pack: Path, site: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a pack's script. site: a folder with the only package that it finds, NumPy."""
    site.mkdir(exist_ok=True)
    packages = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if not (site / name).exists() and (packages / name).exists():
            (site / name).symlink_to(packages / name)
    return subprocess.run(
        [PYTHON, "-S", pack / "measure.py"],
        env={"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        cwd=site,
    )
