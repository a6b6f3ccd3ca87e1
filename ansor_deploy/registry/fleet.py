"""Hosts of one kind of machine: what several have timed, and whose times all others contradict.

A host has its own clock and noise. Where several have timed a schedule, the median of their times
is what it takes, and by that it is compared with others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
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


@dataclass(frozen=True)
class Timed:
    """What a schedule takes by all hosts of a kind. seconds: median over hosts of their medians."""

    seconds: float
    hosts: int


def ranked(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Timed]]:
    """The rows, the best first, and what the schedule of each takes.

    rows: id, claimed, lost, trace, host and latency of records of one task, target and TVM. What
    was measured here and what others claim are kept apart.
    """
    schedule, rows = itemgetter("claimed", "trace"), list(rows)
    times = _by_host(schedule, rows)
    known = {one: Timed(median(hosts.values()), len(hosts)) for one, hosts in times.items()}

    def rank(pair: tuple[Mapping[str, Any], Timed]) -> tuple[Any, ...]:
        row, timed = pair
        return row["claimed"], row["lost"], timed.seconds, row["latency"], row["id"]

    return sorted(((row, known[schedule(row)]) for row in rows), key=rank)


def disagreeing(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The hosts that disagree with all others on most of their schedules, as `Disagreeing`.

    rows: of `SHARED`.
    """
    ratios: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    schedule = itemgetter("target", "name", "workload", "tvm", "trace")
    for (target, name, *_), times in _by_host(schedule, rows).items():
        for host, seconds in times.items():
            others = [one for other, one in times.items() if other != host]
            if max(others) <= AGREE * min(others):
                ratios[target, name, host].append(seconds / median(others))
    found = (_judged(*key, some) for key, some in sorted(ratios.items()))
    return [one for one in found if one["schedules"] >= LEAST and 2 * one["off"] > one["schedules"]]


def _by_host(
    schedule: Callable[[Mapping[str, Any]], tuple[Any, ...]], rows: Iterable[Mapping[str, Any]]
) -> dict[tuple[Any, ...], dict[str, float]]:
    """The median seconds of each host, by schedule. schedule: which one a row is of."""
    found: dict[tuple[Any, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[schedule(row)][str(row["host"])].append(row["latency"])
    return {
        one: {host: median(some) for host, some in hosts.items()} for one, hosts in found.items()
    }


def _judged(target: str, name: str, host: str, ratios: list[float]) -> dict[str, Any]:
    off = sum(not 1 / AGREE <= ratio <= AGREE for ratio in ratios)
    figures = {"schedules": len(ratios), "off": off, "ratio": median(ratios)}
    return {"host": host, "target": name, "fingerprint": target, **figures}
