"""What this program runs in: who started it, the user's folders, what is installed with it."""

import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Literal

from ..errors import AnsorError, UsageError

Kind = Literal["CACHE", "CONFIG", "DATA", "STATE"]

_BELOW_HOME: dict[Kind, str] = {
    "CACHE": ".cache",
    "CONFIG": ".config",
    "DATA": ".local/share",
    "STATE": ".local/state",
}
_HEAD = 4096  # bytes of a distribution's METADATA, whose first lines are its name and version


def in_ci() -> bool:
    """Whether a service for continuous integration started it: nothing is tuned unless asked."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def below_make() -> bool:
    """Whether make started it, or a program that make started."""
    return "MAKELEVEL" in os.environ


def version(distribution: str) -> str:
    """The installed version of a distribution; "" where there is none."""
    name = re.compile(rf"{_plain(distribution)}_[^_]+")
    for folder in sys.path:
        with suppress(OSError), os.scandir(folder or ".") as entries:  # no folder: an archive
            for entry in entries:
                stem = entry.name.removesuffix(".dist-info")
                ours = stem != entry.name and name.fullmatch(_plain(stem))
                if ours and (found := _said(Path(entry))):
                    return found
    from importlib import metadata  # which asks every kind of importer, and loads what reads mail

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _plain(name: str) -> str:
    """The name of a distribution, or of its folder, as all spellings of it are compared."""
    return re.sub(r"[-_]+", "_", name).lower()


def _said(folder: Path) -> str:
    """The version that the folder of an installed distribution says; "" where it says none."""
    with suppress(OSError):
        head = (folder / "METADATA").read_bytes()[:_HEAD]
        if line := re.search(rb"^Version: *(\S+)", head, re.MULTILINE):
            return line[1].decode(errors="replace")
    return ""


def expanded(text: str) -> Path:
    """A path with the home that "~" means; as it is written where there is none."""
    path = Path(text)
    with suppress(RuntimeError):
        return path.expanduser()
    return path


def user_folder(kind: Kind, content: str, hint: str = "") -> Path:
    """Our folder below `$XDG_CACHE_HOME` or the like, else below the home directory.

    A relative path in the variable is ignored, as the XDG specification demands. UsageError, which
    names the content that it is for, where there is no home directory.
    """
    variable = f"XDG_{kind}_HOME"
    named = Path(os.environ.get(variable, ""))
    try:
        base = named if named.is_absolute() else Path.home() / _BELOW_HOME[kind]
    except RuntimeError as error:
        hint = hint or f"Say where to keep them: {variable}=/an/absolute/path."
        raise UsageError(f"there is no home directory to keep {content} in", hint) from error
    return base / "ansor-deploy"


def shipped(name: str) -> Path:
    """Folder of the content shipped with the tool: "registry", "rules" or "targets".

    In an installed tool it lies inside the package, in a checkout beside it.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_shipped" / name, package.parent / name):
        if folder.is_dir():
            return folder
    hint = "Install the tool again: pip install --force-reinstall ansor-deploy."
    raise AnsorError(f"this installation lacks its {name} folder, beside {package}", hint)


def cache_folder(name: str) -> Path:
    """A folder for what can be had again: below `$XDG_CACHE_HOME`, by default `~/.cache`.

    UsageError if there is no home directory.
    """
    return user_folder("CACHE", "copies") / name
