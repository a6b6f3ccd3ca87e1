"""Randomly damaged sessions of a board, received by the host as from a real board."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.fuzz.command import forget_peak, peak

_TESTS = Path(__file__).resolve().parents[2] / "tests"  # which has the sessions


def attempt(payload: dict[str, Any]) -> dict[str, Any]:
    """Receive the session of a seed; results as of `command.attempt`, code 4 for a lost board."""
    if str(_TESTS) not in sys.path:
        sys.path.append(str(_TESTS))
    from helpers.hostile_frames import listen, mutants  # type: ignore[import-not-found]

    forget_peak()
    began = time.perf_counter()
    said = listen(next(mutants(payload["seed"])), patience=0.2)
    return {
        "code": 4 if said.startswith("lost") else 0,
        "said": said,
        "traceback": not said.isprintable(),
        "seconds": time.perf_counter() - began,
        "megabytes": peak(),
    }
