"""Hosts of one kind of machine: whose times disagree with those of all others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

# Times of one schedule on hosts of one fingerprint that differ by no more agree: clocks differ.
AGREE = 1.25
LEAST = 3  # hosts that have timed a schedule, and schedules by which a host is judged

# The records of schedules that so many hosts have timed.
SHARED = f"""
    WITH timed AS (
        SELECT workload, target, tvm, trace, latency,
            json_extract(provenance, '$.device') AS host FROM records
    ), shared AS (
        SELECT workload, target, tvm, trace FROM timed
        GROUP BY workload, target, tvm, trace HAVING count(DISTINCT host) >= {LEAST}
    )
    SELECT t.name, timed.* FROM shared
    CROSS JOIN timed USING (workload, target, tvm, trace)
    JOIN targets AS t ON t.fingerprint = timed.target
    ORDER BY timed.target, timed.workload, timed.tvm, host
"""  # noqa: S608 - a number of ours


def disagreeing(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The hosts that disagree with all others on most of their schedules, as `Disagreeing`.

    rows: of `SHARED`.
    """
    ratios: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for (target, name), times in _schedules(rows):
        for host, seconds in times.items():
            others = [one for other, one in times.items() if other != host]
            if max(others) <= AGREE * min(others):
                ratios[target, name, host].append(seconds / median(others))
    found = (_judged(*key, some) for key, some in sorted(ratios.items()))
    return [one for one in found if one["schedules"] >= LEAST and 2 * one["off"] > one["schedules"]]


def _schedules(
    rows: Iterable[Mapping[str, Any]],
) -> Iterable[tuple[tuple[str, str], dict[str, float]]]:
    """Of each schedule its target, and the median seconds of each host."""
    found: dict[Any, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        key = (row["target"], row["name"], row["workload"], row["tvm"], row["trace"])
        found[key][str(row["host"])].append(row["latency"])
    for (target, name, *_), hosts in found.items():
        yield (target, name), {host: median(some) for host, some in hosts.items()}


def _judged(target: str, name: str, host: str, ratios: list[float]) -> dict[str, Any]:
    off = sum(not 1 / AGREE <= ratio <= AGREE for ratio in ratios)
    figures = {"schedules": len(ratios), "off": off, "ratio": median(ratios)}
    return {"host": host, "target": name, "fingerprint": target, **figures}
