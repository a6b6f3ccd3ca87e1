"""How much of a model the registry covers: the best record of each task, and what is missing."""

import json
from functools import partial
from typing import Any, TypedDict

from ..errors import UsageError
from ..system.environment import version
from ..system.json_types import Count, Digest, Ms, Shape, Share, Time
from ..target import Target
from .database import Database
from .listing import OF_MODEL, OF_TARGET, best_of
from .record import forecast, roofline
from .schema import WORKLOADS
from .title import titled

_NAMED = 10  # the most models that a message names
_DIGEST = 64  # digits of a digest
_PLAN = "ansor-deploy plan MODEL says what a build would reuse"
_MODELS = f"SELECT digest, name FROM models WHERE {OF_MODEL} ORDER BY name, digest"
_TARGETS = f"""
    SELECT fingerprint, name, json FROM targets
    WHERE {OF_TARGET}
    AND fingerprint IN (SELECT target FROM model_tasks WHERE model = :digest)
    ORDER BY name, fingerprint
"""
_TASKS = f"""
    SELECT k.workload, w.op, w.name, w.shapes, w.dtypes, w.flops, w.bytes, k.weight,
        r.id AS record, r.latency * 1e3 AS latency_ms, r.created, r.provenance
    FROM model_tasks AS k
    JOIN workloads AS w ON w.key = k.workload
    LEFT JOIN records AS r ON r.id = {best_of(":tvm")}
    WHERE k.model = :digest AND k.target = :fingerprint
"""


class CoveredTask(TypedDict):
    """A task of a model. record: null where there is none; the latency is an estimate then."""

    workload: Digest
    op: str
    name: str
    title: str
    shapes: list[Shape]
    dtypes: list[str]
    weight: Count
    record: Digest | None
    latency_ms: Ms
    created: Time | None
    search: str | None
    device: str | None
    share: Share


class Coverage(TypedDict):
    """What a build for a target could reuse.

    covered: how many tasks have a record. share: their share of the model's time.
    """

    target: str
    fingerprint: Digest
    tvm: str
    covered: Count
    share: float
    latency_ms: Ms
    tasks: list[CoveredTask]


class Best(TypedDict):
    """What a build of a model could reuse: the answer of `registry best --json`."""

    model: str
    digest: Digest
    targets: list[Coverage]


def coverage(registry: Database, model: str, target: str) -> Best:
    """What a build of a model could reuse, target by target.

    model: its name, with or without .onnx, or the beginning of its digest. target: its name or the
    beginning of its fingerprint; "" for all targets that the model was planned for. UsageError
    where the model, or the model on this target, is unknown.
    """
    found = _model(registry, model)
    targets = registry.rows(_TARGETS, {"target": target, "digest": found["digest"]})
    if not targets:
        raise UsageError(
            f"the registry has no tasks of {found['name']} for the target {target}",
            f"build it first: ansor-deploy build {found['name']} --target {target}",
        )
    parts = [_on_target(registry, found["digest"], row) for row in targets]
    return {"model": found["name"], "digest": found["digest"], "targets": parts}


def _model(registry: Database, model: str) -> dict[str, Any]:
    found = registry.rows(_MODELS, {"model": model}) if model else []
    if not found:
        known = sorted({row["name"] for row in registry.rows(_MODELS, {"model": ""})})
        names = ", ".join(known[:_NAMED]) + (", ..." if len(known) > _NAMED else "")
        raise UsageError(
            f"the registry knows no model {model[:12] if len(model) == _DIGEST else model}",
            f"it knows {names}" if known else f"it has records and no builds: {_PLAN}",
        )
    if len(found) > 1:
        names = ", ".join(f"{row['digest'][:12]} {row['name']}" for row in found[:_NAMED])
        raise UsageError(f"{model} may be {names}", "name it by its digest, or by its file")
    return found[0]


def _on_target(registry: Database, digest: str, row: dict[str, Any]) -> Coverage:
    tvm = version("apache-tvm")
    target = registry.decoded(lambda row: Target.from_json(json.loads(row["json"])), row, "name")
    values = {"digest": digest, "fingerprint": row["fingerprint"], "tvm": tvm}
    read = partial(_task, target=target)
    tasks = [registry.decoded(read, task, "workload") for task in registry.rows(_TASKS, values)]
    _estimate(tasks)
    total = sum(task["weight"] * task["latency_ms"] for task in tasks)
    for task in tasks:
        task["share"] = task["weight"] * task["latency_ms"] / total
    tasks.sort(key=lambda task: (-task["share"], task["workload"]))
    covered = [task for task in tasks if task["record"]]
    return {
        "target": row["name"],
        "fingerprint": row["fingerprint"],
        "tvm": tvm,
        "covered": len(covered),
        "share": sum(task["share"] for task in covered),
        "latency_ms": total,
        "tasks": tasks,
    }


def _estimate(tasks: list[dict[str, Any]]) -> None:
    """Give each task without a record the latency that a plan forecasts."""
    known = {at: row["latency_ms"] for at, row in enumerate(tasks) if row["record"]}
    limits = {at: (row["weight"], row.pop("roofline_ms")) for at, row in enumerate(tasks)}
    for at, latency in forecast(limits, known).items():
        tasks[at]["latency_ms"] = latency


def _task(row: dict[str, Any], target: Target) -> dict[str, Any]:
    """A task's row, with its roofline and with the record's search and device."""
    provenance = json.loads(row.pop("provenance") or "{}")
    row["roofline_ms"] = roofline(row.pop("flops"), row.pop("bytes"), target) * 1e3
    where = {name: provenance.get(name) for name in ("search", "device")}
    return {**titled(WORKLOADS.parsed(row)), **where}
