"""Recorded measurements for searches without a clock: from a file or a registry."""

import json
from collections.abc import Iterable
from pathlib import Path

from ansor_deploy.errors import UsageError
from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.registry.store import Registry
from ansor_deploy.target import Target
from benchmarks.search.replay import ReplayMeasurer

_FIELDS = ("trace", "seconds", "error", "message")


def of_registry(registry: Registry, target: Target) -> ReplayMeasurer:
    """All of a registry's measurements for a target."""
    found = registry.measurements(target.fingerprint)
    return ReplayMeasurer(
        (one.key.workload, Outcome(one.trace, one.seconds, one.error, one.message)) for one in found
    )


def of_file(path: Path) -> ReplayMeasurer:
    """The measurements that `save` wrote; UsageError, with the line, for an invalid file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return ReplayMeasurer(_parsed(path, number, line) for number, line in enumerate(lines, 1))


def save(path: Path, recorded: Iterable[tuple[str, Outcome]]) -> None:
    """Write a line of JSON for each: workload, trace, seconds, error, message."""
    with path.open("w", encoding="utf-8") as file:
        for workload, outcome in recorded:
            plain = {name: getattr(outcome, name) for name in _FIELDS}
            file.write(json.dumps({"workload": workload, **plain}, sort_keys=True) + "\n")


def _parsed(path: Path, number: int, line: str) -> tuple[str, Outcome]:
    try:
        data = json.loads(line)
        trace, seconds, error, message = (data[name] for name in _FIELDS)
        return data["workload"], Outcome(trace, tuple(map(float, seconds)), error, message)
    except (ValueError, TypeError, KeyError) as fault:
        raise UsageError(
            f"{path}:{number}: no recorded measurement: {fault}", "record the measurements again"
        ) from fault
