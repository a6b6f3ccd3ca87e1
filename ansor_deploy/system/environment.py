"""What this program runs in: who started it, the user's folders, the installed packages."""

import os
from pathlib import Path
from typing import Literal

from ..errors import UsageError

Kind = Literal["CACHE", "CONFIG", "DATA", "STATE"]

_BELOW_HOME: dict[Kind, str] = {
    "CACHE": ".cache",
    "CONFIG": ".config",
    "DATA": ".local/share",
    "STATE": ".local/state",
}


def in_ci() -> bool:
    """Whether a service for continuous integration started it: nothing is tuned unless asked."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def below_make() -> bool:
    """Whether make started it, or a program that make started."""
    return "MAKELEVEL" in os.environ


def version(distribution: str) -> str:
    """The installed version of a distribution; "" where there is none."""
    from importlib import metadata  # as slow as all of `--help`

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


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
