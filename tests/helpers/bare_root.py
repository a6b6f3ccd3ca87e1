"""A root folder for programs that has nothing of this machine but the libraries they link to.

It has no shell: only a C library, its loader, and what `ldd` lists for the programs put there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

_BULK = shutil.ignore_patterns(
    *("test", "tests", "__pycache__", "site-packages", "idlelib", "tkinter", "ensurepip"),
    *("lib2to3", "config-*", "f2py", "include"),
)
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


def missing() -> str:
    """Why programs cannot run in another root here, or "" if they can."""
    able = os.geteuid() == 0 and shutil.which("ldd") and shutil.which("unshare")
    return "" if able else "needs root, to chroot and to mount /proc, and ldd"


class BareRoot:
    """The root folder, which is empty at first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "proc").mkdir(parents=True)  # programs look themselves up in /proc

    def needed_by(self, programs: Iterable[Path]) -> None:
        """Copy the system libraries that these programs link to into the root."""
        said = subprocess.run(
            [shutil.which("ldd"), *map(str, programs)], capture_output=True, text=True, check=False
        )
        for name in set(_LIBRARY.findall(said.stdout)):
            if not Path(name).is_relative_to(self.folder):
                self._put(Path(name), Path(name))

    def python(self) -> str:
        """Copy this Python, with its library and NumPy, into the root; return its path there."""
        program = Path(sys.executable).resolve()
        library, numpy = Path(sysconfig.get_path("stdlib")), Path(find_spec("numpy").origin).parent
        self._put(program, program)
        shutil.copytree(library, self._place(library), ignore=_BULK, copy_function=_link)
        for folder in (numpy, numpy.with_name("numpy.libs")):
            if folder.is_dir():  # beside the library, as Debian has no site-packages
                place = self._place(library / folder.name)
                shutil.copytree(folder, place, ignore=_BULK, copy_function=_link)
        self.needed_by([program, *self._place(library).rglob("*.so*")])
        return str(program)

    def run(self, *words: str, folder: str = "/") -> subprocess.CompletedProcess[str]:
        """Run a program to its end, in a folder of the root and without environment variables."""
        line = [shutil.which("unshare"), "--mount-proc", "--root", self.folder, "--wd", folder]
        return subprocess.run(
            [*line, *words], env={}, capture_output=True, text=True, check=False, timeout=300
        )

    def _place(self, path: Path) -> Path:
        return self.folder / path.relative_to("/")

    def _put(self, path: Path, name: Path) -> None:
        place = self._place(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            shutil.copyfile(path, place)
            place.chmod(0o755)


def _link(source: str, place: str) -> None:
    """Copy a file, or link it if both places are on one file system."""
    try:
        os.link(source, place)
    except OSError:
        shutil.copyfile(source, place)
