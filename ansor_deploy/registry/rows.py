"""How the registry's nouns become rows and rows become nouns again.

Traces are most of a registry, and are alike: zlib with a preset dictionary makes them a fifth of
what it makes of them alone. Rows written without the dictionary are read all the same.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from functools import cache
from typing import Any

from ..project import shipped
from ..system.digest import canonical_json, sha256
from .keys import TaskKey
from .record import Build, Measurement, Provenance, Record, SearchEnd, Workload

Row = tuple[Any, ...]  # values in the order of the table's columns

_CHANGED = "it is not as it was written"
_MOST = 1 << 26  # bytes of a text; a registry may come from someone else


def workload_row(workload: Workload) -> Row:
    """The row of a workload."""
    return (
        workload.key,
        workload.op,
        workload.name,
        workload.family,
        canonical_json(workload.shapes),
        canonical_json(workload.dtypes),
        float(workload.flops),
        float(workload.bytes),
        packed(workload.text),
    )


def workload_of(row: dict[str, Any]) -> Workload:
    """The workload of a row; ValueError, KeyError, TypeError or zlib.error if it is none."""
    text = unpacked(row["text"])
    if sha256(text) != row["key"]:
        raise ValueError(_CHANGED)
    return Workload(
        key=row["key"],
        text=text,
        op=row["op"],
        name=row["name"],
        family=row["family"],
        shapes=tuple(map(tuple, json.loads(row["shapes"]))),
        dtypes=tuple(json.loads(row["dtypes"])),
        flops=row["flops"],
        bytes=row["bytes"],
    )


def measurement_row(measurement: Measurement) -> Row:
    """The row of a measurement, but for its number."""
    return (
        measurement.key.workload,
        measurement.key.target,
        canonical_json(measurement.seconds),
        measurement.error,
        measurement.message,
        canonical_json(asdict(measurement.provenance)),
        packed(measurement.trace),
        measurement.features,
    )


def measurement_of(row: dict[str, Any]) -> Measurement:
    """The measurement of a row; raises as `workload_of` does."""
    return Measurement(
        key=TaskKey(row["workload"], row["target"]),
        trace=unpacked(row["trace"]),
        seconds=tuple(json.loads(row["seconds"])),
        error=row["error"],
        message=row["message"],
        provenance=Provenance(**json.loads(row["provenance"])),
        features=row["features"],
    )


def record_row(record: Record) -> Row:
    """The row of a record."""
    return (
        record.id,
        record.key.workload,
        record.key.target,
        record.provenance.tvm,
        record.latency,
        record.provenance.created,
        canonical_json(record.seconds),
        canonical_json(record.proof),
        canonical_json(asdict(record.provenance)),
        packed(record.trace),
    )


def record_of(row: dict[str, Any]) -> Record:
    """The record of a row; raises as `workload_of` does."""
    record = Record(
        key=TaskKey(row["workload"], row["target"]),
        trace=unpacked(row["trace"]),
        seconds=tuple(json.loads(row["seconds"])),
        proof=json.loads(row["proof"]),
        provenance=Provenance(**json.loads(row["provenance"])),
    )
    # A flipped bit that SQLite itself cannot notice. The id covers all but the copied columns.
    copied = (record.id, record.provenance.tvm, record.latency, record.provenance.created)
    if copied != tuple(row[name] for name in ("id", "tvm", "latency", "created")):
        raise ValueError(_CHANGED)
    return record


def search_row(end: SearchEnd) -> Row:
    """The row of a search's end, but for its number."""
    return (
        end.key.workload,
        end.key.target,
        end.tvm,
        end.search,
        end.trials,
        end.reason,
        end.enough_for,
        end.created,
        end.rules,
    )


_JSON = ("manifest", "asked", "verification", "digests")  # columns of a build


def build_row(build: Build) -> dict[str, Any]:
    """The row of a build, but for its number, by column."""
    return {**vars(build), **{name: canonical_json(getattr(build, name)) for name in _JSON}}


def build_of(row: dict[str, Any]) -> Build:
    """The build of a row; raises as `workload_of` does."""
    values = {name: value for name, value in row.items() if name != "id"}
    return Build(**{**values, **{name: json.loads(row[name]) for name in _JSON}})


def packed(text: str) -> bytes:
    """A text in few bytes."""
    packer = zlib.compressobj(level=9, memLevel=9, zdict=_dictionary())
    return packer.compress(text.encode()) + packer.flush()


def unpacked(blob: bytes, most: int = _MOST) -> str:
    """The text of a `packed`; zlib.error or ValueError if it is none, or of more bytes."""
    unpacker = zlib.decompressobj(zdict=_dictionary())
    text = unpacker.decompress(blob, most)
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("a packed text is cut off, too long, or followed by something")
    return text.decode()


@cache
def _dictionary() -> bytes:
    """Two traces, never to be changed: every row was written with it."""
    return (shipped("registry") / "traces.zdict").read_bytes()
