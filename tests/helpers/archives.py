"""Unpacking of archives in the way that users do it."""

import shutil
import subprocess
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive into a folder, which is created if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([shutil.which("tar"), "-xf", archive, "-C", folder], check=True)
