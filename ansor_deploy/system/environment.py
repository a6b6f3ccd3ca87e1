"""What this program runs in: who started it, and which packages are installed."""

from __future__ import annotations

import os


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
