"""The firewall: everything from outside must pass it before anything else uses it.

A tuning record is code: its trace is a program for TVM. So every target, workload and record of a
bundle, another registry or a lock file must have the form that this tool writes itself: fields,
types, bounds, and for traces a list of allowed instructions (`instructions.py`). The checks are
plain Python on JSON. A record that passes may still be a bad schedule, or lie about its speed; it
cannot be anything but a schedule.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from ..system.digest import canonical_json, sha256
from ..system.untrusted import Refused, exactly, quoted, refuse
from ..target import GPU_FIELDS, IDENTITY, Target, complaints
from .forms import check_program
from .instructions import check_trace
from .record import Contest, Record, Workload
from .schema import BEATEN, RECORDS, WORKLOADS

AHEAD = timedelta(days=1)  # another machine's clock may be ahead of this one's by so much


def target_fields(target: dict[str, Any]) -> dict[str, Any]:
    """The fields of a target's JSON object that bundles have: those that its fingerprint covers."""
    data = {name: target[name] for name in IDENTITY}
    return {**data, "features": sorted(data["features"])}


def check_target(data: Any) -> Target:
    """The target of a `target_fields` object, named after its cpu; Refused if it is invalid."""
    gpu = exactly(data, *IDENTITY)["gpu"]
    if gpu is not None:
        exactly(gpu, *GPU_FIELDS)
    given = {name: data[name] for name in IDENTITY if name != "gpu" or gpu is not None}
    wrong = complaints(given)
    refuse(wrong, f"target: {'; '.join(wrong)}")
    refuse((data["kind"] == "cuda") != (gpu is not None), "target: kind and gpu differ")
    refuse(len(canonical_json(data)) > 4096, "target: it is too long")
    refuse(data["features"] != sorted(data["features"]), "target: features are not sorted")
    # Placeholders: estimates use the figures of a target that was declared here, never these.
    return Target.from_json({**data, "name": data["cpu"], "peak_gflops": 1.0, "memory_gbs": 1.0})


def check_workload(data: Any) -> Workload:
    """The workload that others sent, without a name; Refused if it is invalid.

    Its program is compared with programs made here, by its digest, and never run.
    """
    workload: Workload = WORKLOADS.admitted(data)
    check_program(workload.text)
    refuse(workload.key != sha256(workload.text), "workload: the key is not its text's digest")
    as_many = len(workload.shapes) == len(workload.dtypes)
    refuse(not as_many, "workload: it has not as many shapes as dtypes")
    return workload


def check_record(
    claimed: Any,
    data: Any,
    target: Target,
    workload: Workload | None = None,
    passed: Collection[str] = (),
) -> Record:
    """The record of a `Record.to_json` object; Refused if it is invalid.

    claimed: the id that the record must have. target, workload: those that it is for; the workload
    only if it is known. passed: ids of records that have passed before. Their traces, which the ids
    cover, are not walked again.
    """
    unproven = isinstance(data, dict) and not data.get("proof", True)
    refuse(unproven, "record: no proof of its output")
    record: Record = RECORDS.admitted(data)
    if record.id not in passed:
        check_trace(record.trace, target.kind)
    if workload is not None and (wrong := workload.impossible(record.seconds, target)):
        raise Refused(f"record: {wrong}")
    refuse(record.id != claimed, f"record: id {quoted(claimed)} is not its content's digest")
    return replace(record, claimed=True)


def check_contest(data: Any) -> Contest:
    """The contest that others sent; Refused if it is invalid.

    One from the future is refused: the later of two contests counts, so none made here could
    overrule it.
    """
    contest: Contest = BEATEN.admitted(data)
    refuse(contest.loser == contest.winner, "contest: a record against itself")
    latest = datetime.now(timezone.utc) + AHEAD
    refuse(contest.created > latest.isoformat(), f"contest: {contest.created} is to come")
    return contest
