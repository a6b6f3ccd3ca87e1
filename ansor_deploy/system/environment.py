"""This program's surroundings: who started it, the user's folders, installed packages."""

import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Literal

from ..errors import AnsorError, UsageError
from .ownership import foreign_owner, others_may_change

Kind = Literal["CACHE", "CONFIG", "DATA", "STATE"]

_BELOW_HOME: dict[Kind, str] = {
    "CACHE": ".cache",
    "CONFIG": ".config",
    "DATA": ".local/share",
    "STATE": ".local/state",
}
_OURS = 0o700  # the permissions of a folder that nobody else may enter
_HEAD = 4096  # bytes read of a METADATA file, which begins with name and version


def in_ci() -> bool:
    """Whether a continuous-integration service runs it, where nothing is tuned unless asked for."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def below_make() -> bool:
    """Whether make started this program, directly or through another."""
    return "MAKELEVEL" in os.environ


def version(distribution: str) -> str:
    """The installed version of a distribution, or "" if it is not installed."""
    name = re.compile(rf"{_plain(distribution)}_[^_]+")
    for folder in sys.path:
        with suppress(OSError), os.scandir(folder or ".") as entries:  # fails for an archive
            for entry in entries:
                stem = entry.name.removesuffix(".dist-info")
                ours = stem != entry.name and name.fullmatch(_plain(stem))
                if ours and (found := _said(Path(entry))):
                    return found
    from importlib import metadata  # slow: it imports the email package, and asks all finders

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _plain(name: str) -> str:
    """The name of a distribution or of its folder, normalised to compare spellings."""
    return re.sub(r"[-_]+", "_", name).lower()


def _said(folder: Path) -> str:
    """The version in an installed distribution's metadata, or "" if it has none."""
    with suppress(OSError):
        head = (folder / "METADATA").read_bytes()[:_HEAD]
        if line := re.search(rb"^Version: *(\S+)", head, re.MULTILINE):
            return line[1].decode(errors="replace")
    return ""


def expanded(text: str) -> Path:
    """A path with "~" expanded; left as it is where there is no home directory."""
    path = Path(text)
    with suppress(RuntimeError):
        return path.expanduser()
    return path


def user_folder(kind: Kind, content: str, hint: str = "") -> Path:
    """Our folder below `$XDG_CACHE_HOME` or the like, else below the home directory.

    content: what is kept there, for the message. A relative path in the variable is ignored, as the
    XDG specification demands. UsageError where there is no home directory, or HOME is a relative
    path: the next folder would have another registry.
    """
    variable = f"XDG_{kind}_HOME"
    named = Path(os.environ.get(variable, ""))
    try:
        base = named if named.is_absolute() else _home() / _BELOW_HOME[kind]
    except RuntimeError as error:
        hint = hint or f"Say where to keep them: {variable}=/an/absolute/path."
        raise UsageError(f"there is no home directory to keep {content} in{error}", hint) from error
    return base / "ansor-deploy"


def _home() -> Path:
    """The home directory; RuntimeError where none is known, with the reason as words to append."""
    said = os.environ.get("HOME")
    if said is not None and not Path(said).is_absolute():
        raise RuntimeError(f", as HOME={said} is no absolute path")
    with suppress(RuntimeError):
        return Path.home()
    raise RuntimeError


def shipped(name: str) -> Path:
    """The folder of content shipped with the tool: "registry", "rules" or "targets".

    An installed tool has it inside the package, a checkout has it beside the package.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_shipped" / name, package.parent / name):
        if folder.is_dir():
            return folder
    hint = "Install the tool again: pip install --force-reinstall ansor-deploy."
    raise AnsorError(f"this installation lacks its {name} folder, beside {package}", hint)


def cache_folder(name: str) -> Path:
    """A folder for data that can be made again: below `$XDG_CACHE_HOME`, by default `~/.cache`.

    It is this user's alone, since what lies there becomes code. UsageError if there is no home
    directory; AnsorError where the folder is another user's, as under sudo with one's own HOME.
    """
    ours = user_folder("CACHE", "copies")
    with suppress(OSError):  # a folder that cannot be made holds nothing
        ours.mkdir(_OURS, parents=True, exist_ok=True)
        if owner := foreign_owner(ours):
            what = f"the cache {ours} belongs to {owner}, who may put code there"
            raise AnsorError(what, "name one of your own: XDG_CACHE_HOME=/an/absolute/path")
        if others_may_change(ours):  # by an umask that lets a group write
            ours.chmod(_OURS)
    return ours / name
