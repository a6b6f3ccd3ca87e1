"""A root folder in which programs run that has nothing of this machine but what they are linked to.

Not a shell: a C library, its loader, and what `ldd` names for the programs that are put there.
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
    """Why nothing can run in another root here; "" where it can."""
    able = os.geteuid() == 0 and shutil.which("ldd") and shutil.which("unshare")
    return "" if able else "needs root, to chroot and to mount /proc, and ldd"


class BareRoot:
    """The root, with nothing in it at first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "proc").mkdir(parents=True)  # a program finds itself there

    def needed_by(self, programs: Iterable[Path]) -> None:
        """Put the system's libraries there that programs, wherever they lie, are linked to."""
        said = subprocess.run(
            [shutil.which("ldd"), *map(str, programs)], capture_output=True, text=True, check=False
        )
        for name in set(_LIBRARY.findall(said.stdout)):
            if not Path(name).is_relative_to(self.folder):
                self._put(Path(name), Path(name))

    def python(self) -> str:
        """Put this Python there, its standard library and NumPy; the program's path in the root."""
        program = Path(sys.executable).resolve()
        library, numpy = Path(sysconfig.get_path("stdlib")), Path(find_spec("numpy").origin).parent
        self._put(program, program)
        shutil.copytree(library, self._place(library), ignore=_BULK, copy_function=_link)
        for folder in (numpy, numpy.with_name("numpy.libs")):
            if folder.is_dir():  # beside the library: Debian's Python has no site-packages
                place = self._place(library / folder.name)
                shutil.copytree(folder, place, ignore=_BULK, copy_function=_link)
        self.needed_by([program, *self._place(library).rglob("*.so*")])
        return str(program)

    def run(self, *words: str, folder: str = "/") -> subprocess.CompletedProcess[str]:
        """A program's end, in a folder of the root and with no environment."""
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
    """A file that takes no room, where both lie on one file system."""
    try:
        os.link(source, place)
    except OSError:
        shutil.copyfile(source, place)
