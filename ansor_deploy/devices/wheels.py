"""The packages that a board gets, pinned by digest, as wheels in a folder of this machine.

`wheels.sha256` is a list as `sha256sum` writes it, for 64-bit ARM and x86, and four Pythons. Only a
set-up step downloads wheels; everything else uses those that are there.
"""

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import DeviceError
from ..system.digest import file_sha256
from ..system.environment import cache_folder
from ..system.host import RUN_64_BITS, no_runtime

_PINS = Path(__file__).with_name("wheels.sha256")
_SECONDS = 1800.0
_ANY_PYTHON = "3.11"  # any version will do where only a package's libraries are needed
# The libraries that run a built library, by the package that has them.
_LIBRARIES = {
    "apache_tvm": "tvm/lib/libtvm_runtime.so",
    "apache_tvm_ffi": "tvm_ffi/lib/libtvm_ffi.so",
}


@dataclass(frozen=True)
class Wheel:
    """A file in a package index, and its SHA-256."""

    file: str
    sha256: str

    @property
    def platforms(self) -> list[str]:
        """The tags of the platforms that it is for."""
        return self.file.removesuffix(".whl").split("-")[-1].split(".")

    def fits(self, arch: str, python: str) -> bool:
        """Whether a Python such as "3.11" on that architecture takes it."""
        tag = self.file.split("-")[2]
        machine = all(p == "any" or p.endswith(f"_{arch}") for p in self.platforms)
        return machine and tag in ("py3", f"cp{python.replace('.', '')}")


def wheels_folder() -> Path:
    """The default folder of the wheels on this machine."""
    return cache_folder("wheels")


def pinned(arch: str, python: str) -> list[Wheel]:
    """The wheels of a board; DeviceError where there are none for its kind."""
    pairs = (line.split() for line in _PINS.read_text(encoding="utf-8").splitlines())
    every = [Wheel(file, digest) for digest, file in pairs]
    if reason := no_runtime(arch):
        raise DeviceError(reason, RUN_64_BITS)
    wheels = [wheel for wheel in every if wheel.fits(arch, python)]
    pythons = sorted({w.file.split("-")[2] for w in every} - {"py3"}, key=lambda tag: int(tag[2:]))
    if f"cp{python.replace('.', '')}" not in pythons:
        known = ", ".join(f"3.{tag[3:]}" for tag in pythons)
        what = f"the board's Python is {python}, and the runtime is pinned for {known}"
        hint = "install one of these as `python3` on the board"
        raise DeviceError(what, hint)
    return wheels


def fetch_wheels(
    arch: str, python: str, folder: Path, say: Callable[[str], None] = lambda line: None
) -> list[Path]:
    """Download missing wheels by pip into the folder; DeviceError where that fails.

    say: called with a line before a download.
    """
    wheels = pinned(arch, python)
    _fetch(wheels, python, folder, lambda: say(f"packages for {arch}, Python {python}"))
    return [folder / wheel.file for wheel in wheels]


def fetch_runtime(arch: str, folder: Path) -> None:
    """Download the wheels that `runtime_libraries` needs; DeviceError where that fails."""
    wheels = [w for w in pinned(arch, _ANY_PYTHON) if w.file.partition("-")[0] in _LIBRARIES]
    _fetch(wheels, _ANY_PYTHON, folder)


def _fetch(
    wheels: Sequence[Wheel], python: str, folder: Path, begin: Callable[[], None] = lambda: None
) -> None:
    """Download the wheels that are missing. begin: called before that."""
    missing = [wheel for wheel in wheels if not _is_whole(folder / wheel.file, wheel)]
    if missing:
        begin()
        folder.mkdir(parents=True, exist_ok=True)
        _download(missing, python, folder)


def present(arch: str, python: str, folder: Path, name: str) -> list[Path]:
    """The wheels of a board called `name`; DeviceError where one is missing or damaged."""
    wheels = pinned(arch, python)
    for wheel in wheels:
        if not _is_whole(folder / wheel.file, wheel):
            what = "damaged" if (folder / wheel.file).exists() else "missing"
            what = f"{folder / wheel.file} is {what}: {name} ({arch}, Python {python}) needs it"
            hint = f"run: ansor-deploy devices install {name}"
            raise DeviceError(what, hint)
    return [folder / wheel.file for wheel in wheels]


def runtime_libraries(arch: str, wheels: Path, folder: Path) -> bool:
    """Put TVM's runtime for an architecture into a folder; False where no wheels have it.

    wheels: the folder that `fetch_runtime` filled, or `fetch_wheels` for any Python.
    """
    pairs = (line.split() for line in _PINS.read_text(encoding="utf-8").splitlines())
    pins = [Wheel(file, digest) for digest, file in pairs]
    for package, member in _LIBRARIES.items():
        found = (w for w in pins if w.file.startswith(f"{package}-") and f"_{arch}." in w.file)
        whole = next((w for w in found if _is_whole(wheels / w.file, w)), None)
        if whole is None:
            return False
        with zipfile.ZipFile(wheels / whole.file) as file:
            (folder / Path(member).name).write_bytes(file.read(member))
    return True


def _is_whole(path: Path, wheel: Wheel) -> bool:
    return path.is_file() and file_sha256(path) == wheel.sha256


def _download(wheels: Sequence[Wheel], python: str, folder: Path) -> None:
    """Let pip check the digests; nothing that a package contains is run."""
    platforms = sorted({tag for wheel in wheels for tag in wheel.platforms} - {"any"})
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        for wheel in wheels:
            name, version, *_ = wheel.file.split("-")
            file.write(f"{name}=={version} --hash=sha256:{wheel.sha256}\n")
        file.flush()
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--no-input", "--require-hashes"]
        command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", python]
        command += [word for tag in platforms for word in ("--platform", tag)]
        command += ["--dest", str(folder), "--requirement", file.name]
        try:
            subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
        except subprocess.SubprocessError as error:
            raise _not_fetched(error) from error


def _not_fetched(error: subprocess.SubprocessError) -> DeviceError:
    reason = f"no end after {_SECONDS:.0f} s"
    if isinstance(error, subprocess.CalledProcessError):
        reason = (error.stderr.strip().splitlines() or ["no reason given"])[-1]
    hint = "pip must reach a package index: look at `pip config list`, then repeat the command"
    return DeviceError(f"the board's packages could not be downloaded: {reason}", hint)
