"""Combine the times of several hosts of one kind, and find hosts that all others contradict.

Each host has its own clock and noise. Where several have timed a schedule, the median of their
times counts when the schedule is compared with others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from statistics import median
from typing import Any

# Times of a schedule on hosts of one fingerprint agree up to this ratio: clocks differ.
AGREE = 1.25
# A schedule counts if so many hosts have timed it, and a host is judged by as many schedules.
LEAST = 3

# The records of schedules that at least `LEAST` hosts have timed.
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
    """The time of a schedule by all hosts of a kind. seconds: the median of the hosts' medians."""

    seconds: float
    hosts: int


def ranked(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Timed]]:
    """The rows, the best first, each with the time of its schedule.

    rows: id, claimed, lost, trace, host and latency of records of one task, target and TVM. Times
    that were measured here and times that others claim are not combined.
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

    rows: those of the query `SHARED`.
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
    """The median seconds of each host, by schedule. schedule: the schedule's key from a row."""
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
