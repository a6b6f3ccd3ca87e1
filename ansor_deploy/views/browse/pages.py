"""The content of each page, read from the registry by the functions that commands use."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from statistics import median
from typing import Any

from markupsafe import Markup
from msgspec import ValidationError, convert

from ...registry.coverage import coverage
from ...registry.database import Database
from ...registry.history import history
from ...registry.record import roofline
from ...registry.store import Registry
from ...registry.title import shape_text, title
from ...registry.trends import trends as weekly
from ...ship.manifest import Speed
from ...system.words import size_text
from ...target import Target
from ..page.charts import steps
from ..page.curve import Points, Weighed, falling, tuning
from ..text import KEY, duration, gain_texts, latency, share

Page = Callable[[Registry, Mapping[str, str]], dict[str, Any]]
Rows = list[dict[str, Any]]

LINK = 12  # digits of a key in a URL
_BUILDS, _RECORDS, _HISTORY, _CURVES, _WEEKS = 20, 300, 50, 24, 104  # the most rows of each
_TRIED = "SELECT seconds, error FROM measurements WHERE target = ? AND workload = ? ORDER BY id"
_TRIED_MOST = """
    SELECT m.target AS fingerprint, w.key, w.op, w.name, w.shapes, m.trials
    FROM (
        SELECT target, workload, count(*) AS trials FROM measurements GROUP BY target, workload
    ) AS m
    JOIN workloads AS w ON w.key = m.workload
    WHERE m.trials > 1 AND substr(m.target, 1, length(:target)) = :target
    ORDER BY m.trials DESC, w.key LIMIT :most
"""
_TRIALS_BY_OPERATOR = """
    SELECT target, op, count(*) AS trials, sum(error <> '') AS failures
    FROM measurements JOIN workloads ON key = workload GROUP BY target, op
"""
_TARGETS = "SELECT fingerprint, name, json FROM targets ORDER BY name, fingerprint"
_MODELS = "SELECT DISTINCT model FROM model_tasks ORDER BY model"
_OPERATORS = "SELECT DISTINCT op FROM workloads ORDER BY op"


def overview(store: Registry, asked: Mapping[str, str]) -> dict[str, Any]:
    """Totals of the registry, what sharing it has saved, and the newest builds."""
    return {"stats": store.stats(), "builds": _builds(store, "")}


def operators(store: Registry, asked: Mapping[str, str]) -> dict[str, Any]:
    """By target and operator: the time of a run, over all models, and the trials spent."""
    measured = {(row["target"], row["op"]): row for row in store.rows(_TRIALS_BY_OPERATOR)}
    found: dict[str, dict[str, Any]] = {}
    for part in _on_targets(store):
        fingerprint = part["fingerprint"]
        target = found.setdefault(fingerprint, {"fingerprint": fingerprint, "operators": {}})
        _add_operators(target["operators"], part["tasks"])
    for fingerprint, target in found.items():
        rows = [
            {"trials": 0, "failures": 0, **row, **measured.get((fingerprint, row["op"]), {})}
            for row in _by_time(target["operators"])
        ]
        target["operators"], target["trials"] = rows, sum(row["trials"] for row in rows)
    return {"targets": list(found.values())}


def best(store: Registry, asked: Mapping[str, str]) -> dict[str, Any]:
    """The best record of each task, by target."""
    op, target = (asked.get(name) or None for name in ("op", "target"))
    rows = store.query(op=op, target=target, limit=_RECORDS)
    sizes = {row["key"]: row for row in store.rows("SELECT key, flops, bytes FROM workloads")}
    machines = {row["fingerprint"]: row for row in store.rows(_TARGETS)}
    shown: dict[str, Rows] = {}
    for row in rows:
        machine = Target.from_json(json.loads(machines[row["fingerprint"]]["json"]))
        rated = _rated({**row}, sizes[row["workload"]], machine)
        shown.setdefault(row["fingerprint"], []).append(rated)
    return {
        "asked": asked,
        "most": _RECORDS if len(rows) == _RECORDS else None,
        "operators": [row["op"] for row in store.rows(_OPERATORS)],
        "targets": [{**machines[one], "records": some} for one, some in shown.items()],
    }


def curves(store: Registry, asked: Mapping[str, str]) -> dict[str, Any]:
    """How the tasks with the most trials became faster."""
    rows = store.rows(_TRIED_MOST, {"target": asked.get("target", ""), "most": _CURVES})
    drawn = [{**row, **_drawn(store, row["fingerprint"], _named(row), small=True)} for row in rows]
    shown = [row for row in drawn if row["chart"]]
    return {"asked": asked, "curves": shown, "most": _CURVES}


def trends(store: Registry, asked: Mapping[str, str]) -> dict[str, Any]:
    """What was built, measured and saved in each of the newest weeks."""
    weeks = weekly(store, _WEEKS)["weeks"]
    return {"weeks": weeks, "most": max((week["trials_saved"] for week in weeks), default=0)}


def model(store: Registry, asked: Mapping[str, str]) -> dict[str, Any]:
    """A model's tasks on each target, where its time goes, how it was tuned, and its builds."""
    found: dict[str, Any] = {**coverage(store, asked["key"], "")}
    for part in found["targets"]:
        part["operators"] = _by_time(_add_operators({}, part["tasks"]))
        part["chart"] = _model_chart(store, found["model"], part)
    return {**found, "builds": _builds(store, found["digest"])}


def task(store: Registry, asked: Mapping[str, str]) -> dict[str, Any]:
    """Everything known about a task."""
    found = history(store, asked["key"], "", _HISTORY)
    drawn = [
        {**row, **_drawn(store, row["fingerprint"], found["workload"])}
        for row in store.rows(_TARGETS)
    ]
    charts = [one for one in drawn if one["chart"]]
    return {**found, "charts": charts, "measurements": found["measurements"][::-1]}


def _on_targets(store: Registry) -> Iterator[dict[str, Any]]:
    """Each model on each target that it was planned for."""
    for row in store.rows(_MODELS):
        yield from ({**part} for part in coverage(store, row["model"], "")["targets"])


def _add_operators(found: dict[str, dict[str, Any]], tasks: Rows) -> dict[str, dict[str, Any]]:
    """Add the times of tasks, as `coverage` lists them, to their operators."""
    for row in tasks:
        known = {"op": row["op"], "tasks": set(), "untuned": set(), "latency_ms": 0.0}
        one = found.setdefault(row["op"], known)
        one["latency_ms"] += row["weight"] * row["latency_ms"]
        one["tasks" if row["record"] else "untuned"].add(row["workload"])
    return found


def _by_time(found: Mapping[str, dict[str, Any]]) -> Rows:
    """The operators with their shares of the time, the largest first."""
    whole = sum(row["latency_ms"] for row in found.values())
    rows = sorted(found.values(), key=lambda row: (-row["latency_ms"], row["op"]))
    counts = ("tasks", "untuned")
    return [
        {**row, "share": row["latency_ms"] / whole, **{name: len(row[name]) for name in counts}}
        for row in rows
    ]


def _builds(store: Registry, model: str) -> Rows:
    """The newest builds of a model, given by the beginning of its digest, with their gains."""
    return [store.decoded(_raced, row, "id") for row in store.builds_of(model, _BUILDS)]


def _raced(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "gain": _gain(row["manifest"])}


def _gain(manifest: Any) -> str:
    """The result of the race with the untuned library, such as "1.52x faster".

    "" if there was none.
    """
    with suppress(ValidationError):  # times that this version cannot read
        speed = convert(manifest.get("speed"), Speed | None)
        if speed and speed.race:
            return gain_texts(speed.race)[0]
        return "the same" if speed and speed.verdict == "same" else ""
    return ""


def _rated(row: dict[str, Any], size: Mapping[str, float], target: Target) -> dict[str, Any]:
    """A record with its speed, and how near that is to the machine's limit."""
    seconds = row["latency_ms"] / 1e3
    least = roofline(size["flops"], size["bytes"], target)
    return {**row, "gflops": size["flops"] / seconds / 1e9, "limit": least / seconds}


def _drawn(
    store: Database, target: str, workload: Mapping[str, Any], *, small: bool = False
) -> dict[str, Any]:
    """The curve of a task on a target; "" where no measurement succeeded."""
    rows = store.rows(_TRIED, (target, workload["key"]))
    points = falling([_latency(row) for row in rows])
    return {"title": workload["title"], "chart": _chart(points, workload["title"], small=small)}


def _model_chart(store: Registry, name: str, part: Mapping[str, Any]) -> str:
    names = ("workload", "title", "weight", "latency_ms")
    tasks = [Weighed(*(row[one] for one in names)) for row in part["tasks"]]
    found = tuning(store, name, part["fingerprint"], tasks)
    return _chart(found.model.points, name) if found else ""


def _chart(points: Points, name: str, *, small: bool = False) -> str:
    return Markup(steps(points, name, small=small)) if points else ""  # noqa: S704 - it escapes


def _latency(row: Mapping[str, Any]) -> float:
    seconds = json.loads(row["seconds"])
    return median(seconds) if seconds and not row["error"] else float("inf")


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"key": row["key"], "title": title(row["op"], row["name"], json.loads(row["shapes"]))}


def _milliseconds(value: float | None) -> str:
    return "" if value is None else latency(value / 1e3)


FILTERS: dict[str, Callable[..., Any]] = {
    "duration": lambda seconds: "" if seconds is None else duration(seconds),
    "key": lambda digits: str(digits)[:KEY],
    "link": lambda digits: str(digits)[:LINK],
    "ms": _milliseconds,
    "share": share,
    "moment": lambda created: str(created)[:16].replace("T", " "),
    "number": lambda value: "" if value is None else f"{value:,.0f}",
    "ratio": lambda part, whole: share(part / whole) if whole else "",
    "shape": shape_text,
    "size": size_text,
    "sum_of": lambda rows, name: sum(row[name] or 0.0 for row in rows),
}
