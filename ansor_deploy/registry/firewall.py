"""What comes from outside must pass here before anything else looks at it.

A tuning record is code: its trace tells TVM what to build. So every target, workload and record
of a bundle, another registry or a lock file is held to what this tool writes itself: fields,
types, bounds, and for traces a list of allowed instructions (`instructions.py`). Everything is
plain Python on JSON. What passes may still be a bad schedule or a lie about its speed; it cannot
be anything but a schedule.
"""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from datetime import datetime, timedelta, timezone
from statistics import median
from typing import Any

from ..system.digest import canonical_json, sha256
from ..target import GpuLimits, Target, complaints
from .instructions import check_trace
from .keys import TaskKey
from .record import Contest, Provenance, Record, SearchEnd, Workload
from .untrusted import exactly, is_int, is_number, quoted, refuse

MOST_TEXT = 262_144  # characters of a workload's program
MOST_REPEATS = 10_000  # times of one record
FASTEST, SLOWEST = 1e-9, 3600.0  # seconds
MOST_FLOPS = 1e16  # a second: more than any one device
MOST_WORK = 1e18  # operations or bytes of one run
WORST_ERROR = 0.1  # relative; no check of outputs lets more pass
AHEAD = timedelta(days=1)  # by which another machine's clock may be before this one's

_DIGEST = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,39}")
_WORD = re.compile(r"[a-z][a-z0-9_-]{0,60}")
_DEVICE = re.compile(r"(?!.*\.\.)[A-Za-z0-9._:@-]{0,100}")  # no path
_TIME = re.compile(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\+00:00|Z)")
_DTYPE = re.compile(r"(bool|handle|bfloat16|u?int|float)[0-9a-z_]{0,20}")
_REASON = re.compile(r"[a-z][a-z ]{0,40}")
_RULES = re.compile(r"|[0-9a-f]{64}")

# All that a canonical program text consists of: see model/canonical_text.py.
_TOKEN = re.compile(
    r"@?T(?:\.[A-Za-z]\w*)+|v\d+(?:\.\w+)?\b|'[\w.]*'|\d+(?:\.\d+)?(?:e[+-]?\d+)?\b"
    r"|[a-z_]\w*=(?!=)|[()\[\]{},:*+\-/%<>=!&|~^ \n]"
    r"|\b(?:def|main|for|in|with|if|else|not|and|or|True|False|None|range|while|return)\b"
)
_TEXT_START = "@T.prim_func"

# Fields that are no part of a target's fingerprint are not taken from others.
_IDENTITY = (
    *("kind", "triple", "cpu", "features", "cores", "vector_bytes", "vector_registers"),
    *("l1_bytes", "l2_bytes", "l3_bytes", "cache_line_bytes", "gpu"),
)


def target_fields(target: dict[str, Any]) -> dict[str, Any]:
    """What of a target's JSON object travels: the fields that its fingerprint is made of."""
    data = {name: target[name] for name in _IDENTITY}
    return {**data, "features": sorted(data["features"])}


def check_target(data: Any) -> Target:
    """The target of `target_fields`, named after its cpu; Refused if it is none."""
    gpu = exactly(data, *_IDENTITY)["gpu"]
    if gpu is not None:
        exactly(gpu, *(field.name for field in fields(GpuLimits)))
    given = {name: data[name] for name in _IDENTITY if name != "gpu" or gpu is not None}
    wrong = complaints(given)
    refuse(wrong, f"target: {'; '.join(wrong)}")
    refuse((data["kind"] == "cuda") != (gpu is not None), "target: kind and gpu differ")
    refuse(len(canonical_json(data)) > 4096, "target: it is too long")
    refuse(data["features"] != sorted(data["features"]), "target: features are not sorted")
    # Estimates use the figures of a target that was declared here, never these.
    return Target.from_json({**data, "name": data["cpu"], "peak_gflops": 1.0, "memory_gbs": 1.0})


def workload_fields(workload: Workload) -> dict[str, Any]:
    """What of a workload travels: all but the name, which is the model's."""
    return {name: value for name, value in asdict(workload).items() if name != "name"}


def check_workload(data: Any) -> Workload:
    """The workload of `workload_fields`, without a name; Refused if it is none.

    Its program is compared with programs made here, by its digest, and never run.
    """
    exactly(data, "key", "text", "op", "family", "shapes", "dtypes", "flops", "bytes")
    _text(data["text"])
    refuse(data["key"] != sha256(data["text"]), "workload: the key is not its text's digest")
    _words(data, {"op": _WORD, "family": _DIGEST})
    shapes, dtypes = data["shapes"], data["dtypes"]
    lists = isinstance(shapes, list) and isinstance(dtypes, list)
    refuse(not lists or not len(shapes) == len(dtypes) <= 256, "workload: shapes and dtypes")
    refuse(not all(_shape(shape) for shape in shapes), f"workload: shapes {quoted(shapes)}")
    known = all(isinstance(dtype, str) and _DTYPE.fullmatch(dtype) for dtype in dtypes)
    refuse(not known, f"workload: dtypes {quoted(dtypes)}")
    for field in ("flops", "bytes"):
        value = data[field]
        fit = type(value) is float and is_number(value, 0, MOST_WORK)
        refuse(not fit, f"workload: {field} {quoted(value)}")
    shaped = {"shapes": tuple(map(tuple, shapes)), "dtypes": tuple(dtypes)}
    return Workload(**{**data, "name": "", **shaped})


def check_record(claimed: Any, data: Any, kind: str, flops: float = 0.0) -> Record:
    """The record of a `Record.to_json` object whose id is as claimed; Refused if it is none.

    kind: of the target that it is for. flops: of one run of its workload, if known.
    """
    exactly(data, "key", "trace", "seconds", "proof", "provenance")
    key = exactly(data["key"], "workload", "target")
    _words(key, {"workload": _DIGEST, "target": _DIGEST})
    refuse(not isinstance(data["trace"], str), "record: the trace is no text")
    check_trace(data["trace"], kind)
    _proof(data["proof"])
    provenance = _provenance(data["provenance"])
    record = Record(
        TaskKey(**key), data["trace"], _seconds(data["seconds"], flops), data["proof"], provenance
    )
    refuse(record.id != claimed, f"record: id {quoted(claimed)} is not its content's digest")
    return record


def search_fields(end: SearchEnd) -> dict[str, Any]:
    """What of the end of a search travels: all but its rules, which older tools do not know."""
    return {name: value for name, value in asdict(end).items() if name != "rules"}


def check_search(data: Any) -> SearchEnd:
    """The end of a search as `search_fields` has it, its rules unknown; Refused if it is none."""
    exactly(data, "key", "tvm", "search", "trials", "reason", "enough_for", "created")
    key = exactly(data["key"], "workload", "target")
    _words(key, {"workload": _DIGEST, "target": _DIGEST})
    _words(data, {"tvm": _VERSION, "search": _WORD, "reason": _REASON, "created": _TIME})
    counted = all(is_int(data[field], 0, 2**53) for field in ("trials", "enough_for"))
    refuse(not counted, f"search: trials {quoted(data['trials'])}")
    return SearchEnd(**{**data, "key": TaskKey(**key)})


def check_contest(data: Any) -> Contest:
    """The contest as `asdict` has it; Refused if it is none.

    The later of two counts, so that one from the future could not be overruled here.
    """
    exactly(data, "loser", "winner", "created")
    _words(data, {"loser": _DIGEST, "winner": _DIGEST, "created": _TIME})
    refuse(data["loser"] == data["winner"], "contest: a record against itself")
    latest = datetime.now(timezone.utc) + AHEAD
    refuse(data["created"] > latest.isoformat(), f"contest: {quoted(data['created'])} is to come")
    return Contest(**data)


def _text(text: Any) -> None:
    fit = isinstance(text, str) and text.startswith(_TEXT_START) and len(text) <= MOST_TEXT
    left = _TOKEN.sub("", text) if fit else "all of it"
    refuse(left, f"workload: no canonical program text: {quoted(left[:20])}")


def _shape(shape: Any) -> bool:
    fit = isinstance(shape, list) and len(shape) <= 64
    return fit and all(is_int(extent, 0, 2**53) for extent in shape)


def _words(data: dict[str, Any], patterns: dict[str, re.Pattern[str]]) -> None:
    for field, pattern in patterns.items():
        value = data[field]
        fit = isinstance(value, str) and pattern.fullmatch(value)
        refuse(not fit, f"{field} {quoted(value)} is not of the form that this tool writes")


def _seconds(times: Any, flops: float) -> tuple[float, ...]:
    fit = isinstance(times, list) and 0 < len(times) <= MOST_REPEATS
    fit = fit and all(type(t) is float and FASTEST <= t <= SLOWEST for t in times)
    refuse(not fit, f"record: times {quoted(times)} are not those of a run")
    refuse(flops > MOST_FLOPS * median(times), f"record: no device does this in {min(times)} s")
    return tuple(times)


def _proof(proof: Any) -> None:
    refuse(not proof, "record: no proof of its output")
    exactly(proof, "oracle", "seed", "max_abs_err", "max_rel_err")
    fit = proof["oracle"] in ("default", "plain") and is_int(proof["seed"], 0, 2**63)
    fit = fit and is_number(proof["max_abs_err"], 0, 1e300)
    fit = fit and is_number(proof["max_rel_err"], 0, WORST_ERROR)
    refuse(not fit, f"record: {quoted(proof)} proves nothing")


def _provenance(data: Any) -> Provenance:
    exactly(data, "tool", "tvm", "search", "device", "seed", "created", "rules")
    patterns = {"tool": _VERSION, "tvm": _VERSION, "search": _WORD, "device": _DEVICE}
    _words(data, {**patterns, "created": _TIME, "rules": _RULES})
    refuse(not is_int(data["seed"], 0, 2**63), f"seed {quoted(data['seed'])}")
    return Provenance(**data)
