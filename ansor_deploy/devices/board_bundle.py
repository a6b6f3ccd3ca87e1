"""The bundle of everything that a board needs to run candidates: an archive named by its digest.

It has TVM's runtime, NumPy and a few modules of our own; no compiler, no tests, no headers. The
packages are this machine's own where the board has the same kind of Python, else pinned wheels.
"""

import gzip
import hashlib
import io
import platform
import re
import shlex
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path, PurePosixPath

from ..errors import DeviceError, DeviceLost
from ..system.host import no_runtime
from .connection import Connection
from .facts import PYTHON, Facts, last_line
from .wheels import fetch_wheels, present, wheels_folder

UPLOAD_SECONDS = 1800.0
_PACKAGES = ("apache-tvm", "apache-tvm-ffi", "ml_dtypes", "numpy", "typing_extensions")
# Our modules, by folder. A test checks that everything they import is among them.
_OWN = {
    "": "errors",
    "devices": "agent arrivals frames library_calls",
    "measure": "check clock cold_weights guarded head_to_head offline on_cpu on_gpu runner",
    "runtime": "batches context cpu_pinning cuda dlpack fit functions gpu_code interface lengths "
    "manifest_json model native out_of_range profile session shared steps tensors wrong_processor",
    "system": "child fence host limits lock_file machine_fault regular_file run_times scratch "
    "worker",
}
_TOPS = ("ml_dtypes", "numpy", "numpy.libs", "tvm_ffi", "typing_extensions.py")
_RUNTIME = "tvm/lib/libtvm_runtime.so"  # the only file of `tvm`: the package cannot be imported
_PORTABLE = re.compile(r"^Tag: .*(manylinux|-any$)", re.MULTILINE)
_NOT_NEEDED = re.compile(
    r"(^|/)(tests|__pycache__|include|_examples)/"
    r"|^numpy/(f2py|distutils)/"
    r"|^tvm_ffi/(3rdparty|cython|share|src|stub|testing)/"
    r"|(?<!multiarray)_tests\.[^/]*\.so$"  # NumPy 1 imports that one to document it
    r"|\.(a|pyi|pxd|pyx|h|txt|cmake)$"
)


@dataclass(frozen=True)
class BoardBundle:
    """An archive for a board. digest: SHA-256 of the tar archive, in hex."""

    archive: bytes
    digest: str

    def packed(self) -> bytes:
        """The archive compressed, as it is sent."""
        return gzip.compress(self.archive, compresslevel=6, mtime=0)


@lru_cache(maxsize=4)
def make_bundle(name: str, arch: str, python: str, wheels: Path | None = None) -> BoardBundle:
    """The bundle of a board, with a Python such as "3.11"; DeviceError where a wheel is missing.

    name: that of the board. wheels: the folder that `fetch_wheels` filled; by default the user's.
    """
    archive = _tar(board_files(name, arch, python, wheels))
    return BoardBundle(archive, hashlib.sha256(archive).hexdigest())


def board_files(name: str, arch: str, python: str, wheels: Path | None = None) -> dict[str, bytes]:
    """The files of the bundle, by path. Arguments and errors: as in `make_bundle`."""
    files = own_files()
    if is_like_here(arch, python):
        return files | _here()
    for wheel in present(arch, python, wheels or wheels_folder(), name):
        files |= _of_wheel(wheel)
    return files


def own_files() -> dict[str, bytes]:
    """Our own modules that run candidates, by path."""
    return {f"ansor_deploy/{name}": content for name, content in own_modules(_OWN).items()}


def install(
    name: str,
    connection: Connection,
    board: Facts,
    wheels: Path | None,
    say: Callable[[str], None] = lambda line: None,
) -> str:
    """Put the runtime on a board that lacks it; return its folder there.

    wheels: the folder of this machine that `fetch_wheels` filled; by default the user's, into which
    missing wheels are fetched. say: called with a line before each slow step. DeviceError where a
    wheel is missing, or the board has no room; DeviceLost where the upload was interrupted.
    """
    arch, python = board.machine, board.short_python
    if wheels is None and not is_like_here(arch, python):
        fetch_wheels(arch, python, wheels_folder(), say)
    bundle = make_bundle(name, arch, python, wheels)
    if bundle.digest not in board.runtimes:
        say(f"the runtime on {name} ({len(bundle.archive) / 1e6:.0f} MB)")
        _upload(name, connection, board, bundle)
    return f"{board.cache}/{bundle.digest}"


def _upload(name: str, connection: Connection, board: Facts, bundle: BoardBundle) -> None:
    script = Path(__file__).with_name("unpack.py").read_text(encoding="utf-8")
    command = f"exec {PYTHON} -c {shlex.join([script, board.cache, bundle.digest])}"
    ran = connection.run(command, bundle.packed(), UPLOAD_SECONDS)
    if ran.status == 0:
        return
    reason = last_line(ran)
    if ran.status < 0 or "damaged" in reason or "end-of-stream" in reason:
        raise DeviceLost(f"{name}: the upload was torn: {reason}", "repeat the command")
    raise DeviceError(
        f"{name}: the runtime ({len(bundle.archive) / 1e6:.0f} MB) cannot be unpacked into "
        f"{board.cache}: {reason}",
        "make room on the board, or give its user a home folder that can be written",
    )


def is_like_here(arch: str, python: str) -> bool:
    """Whether this machine's packages run on a board, so that it needs no wheels."""
    same = python == f"{sys.version_info[0]}.{sys.version_info[1]}"
    if not same or no_runtime(arch) or platform.machine() != arch:
        return False
    # A package that was built on this machine may need libraries that a board lacks.
    wheels = (metadata.distribution(package).read_text("WHEEL") for package in _PACKAGES)
    return all(_PORTABLE.search(wheel or "") for wheel in wheels)


def _here() -> dict[str, bytes]:
    """The files of this machine's packages, which run on any Linux of its architecture."""
    files: dict[str, bytes] = {}
    for package in _PACKAGES:
        found = metadata.distribution(package)
        for path in found.files or ():
            if _wanted(path):
                files[str(path)] = Path(str(path.locate())).read_bytes()
    return files


def _of_wheel(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        files = [entry.filename for entry in file.infolist() if not entry.is_dir()]
        return {name: file.read(name) for name in files if _wanted(PurePosixPath(name))}


def _wanted(path: PurePosixPath) -> bool:
    name = str(path)
    if name == _RUNTIME:
        return True
    return path.parts[0] in _TOPS and not _NOT_NEEDED.search(name)


def own_modules(rooms: Mapping[str, str]) -> dict[str, bytes]:
    """Modules of this package, with the `__init__` of each folder, by their paths in it.

    rooms: names of modules, by folder; "" is the package itself.
    """
    root = Path(__file__).resolve().parents[1]
    names = ((room, name) for room, words in rooms.items() for name in ("__init__", *words.split()))
    paths = (root / room / f"{name}.py" for room, name in names)
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def _tar(files: dict[str, bytes]) -> bytes:
    """A tar archive, the same bytes for the same files: sorted, without times and owners."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return stream.getvalue()
