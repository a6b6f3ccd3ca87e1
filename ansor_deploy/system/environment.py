"""What the environment says of who runs this program."""

from __future__ import annotations

import os


def in_ci() -> bool:
    """Whether a service for continuous integration does: nothing may be tuned by the way."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def below_make() -> bool:
    """Whether make does, or what make runs."""
    return "MAKELEVEL" in os.environ


def version(distribution: str) -> str:
    """Its installed version, or ""."""
    from importlib import metadata  # as slow as all of `--help`

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
