"""Stdout belongs to the answer: one JSON object, or the lines that a person asked for."""

from __future__ import annotations

import ctypes
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click


def print_json(value: Any) -> None:
    """One JSON document; what JSON cannot say (infinity, NaN) becomes null."""
    click.echo(json.dumps(finite(value), indent=2, allow_nan=False, default=str))


def finite(value: Any) -> Any:
    """The value without the floats that are no JSON numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def in_columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The rows as lines, each column as wide as it needs to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


@contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """Meanwhile what libraries, compilers and child processes print to stdout goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # what C++ has printed waits in a buffer of its own
        os.dup2(kept, 1)
        os.close(kept)
