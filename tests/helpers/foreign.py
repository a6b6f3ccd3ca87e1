"""A small bundle as another machine would send it, in parts that tests can damage."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansor_deploy.registry.bundle import Bundle, read_bundle
from ansor_deploy.registry.record import Record, SearchEnd
from ansor_deploy.registry.transfer import contents, take_in
from ansor_deploy.system.digest import canonical_json, sha256
from helpers.registry_samples import TARGET

TVM = "0.27.0.post1"
HEADER = '{"ansor-deploy-bundle":1}'
TEXT = """\
@T.prim_func(s_tir=True)
def main(v0: T.Buffer((T.int64(SIZE),), 'float32'), v1: T.Buffer((T.int64(SIZE),), 'float32')):
    T.func_attr({'layout_free_buffers': [], 'tirx.noalias': True})
    for v2 in range(T.int64(SIZE)):
        with T.sblock('b0'):
            v3 = T.axis.spatial(T.int64(SIZE), v2)
            T.reads(v0[v3])
            T.writes(v1[v3])
            v1[v3] = T.max(v0[v3], T.float32(0.0))
"""

# (i) -> (i // 4, i % 4), in TVM's JSON.
INDEX_MAP: dict[str, Any] = {
    "root_index": 10,
    "nodes": [
        {"type": "None"},
        {"type": "ir.PrimType", "data": {"span": 0, "dtype": "int64"}},
        {"type": "ffi.String", "data": "i"},
        {"type": "ir.Var", "data": {"span": 0, "ty": 1, "name": 2}},
        {"type": "ffi.Array", "data": [3]},
        {"type": "int", "data": 4},
        {"type": "ir.IntImm", "data": {"span": 0, "ty": 1, "value": 5}},
        {"type": "prim.FloorDiv", "data": {"span": 0, "ty": 1, "a": 3, "b": 6}},
        {"type": "prim.FloorMod", "data": {"span": 0, "ty": 1, "a": 3, "b": 6}},
        {"type": "ffi.Array", "data": [7, 8]},
        {
            "type": "tirx.IndexMap",
            "data": {"initial_indices": 4, "final_indices": 9, "inverse_index_map": 0},
        },
    ],
    "metadata": {"tvm_version": TVM},
}

INSTRUCTIONS: list[list[Any]] = [
    ["GetSBlock", [], ["b0", "main"], ["b1"]],
    ["GetLoops", ["b1"], [], ["l2", "l3"]],
    ["SamplePerfectTile", ["l2"], [2, 64], ["v4", "v5"]],
    ["Split", ["l2", "v4", "v5"], [True, False], ["l6", "l7"]],
    ["Split", ["l3", "None", 16], [True, False], ["l8", "l9"]],
    ["Reorder", ["l6", "l8", "l7", "l9"], [], []],
    ["Fuse", ["l6", "l8"], [1], ["l10"]],
    ["Parallel", ["l10"], [], []],
    ["Unroll", ["l7"], [], []],
    ["Vectorize", ["l9"], [], []],
    ["CacheRead", ["b1", []], [0, "global"], ["b11"]],
    ["TransformLayout", ["b1", json.dumps(INDEX_MAP)], [0, 0, None, 0], []],
    ["TransformBlockLayout", ["b11"], [json.dumps(INDEX_MAP)], []],
    ["SampleCategorical", [], [[0, 16, 64], [0.25, 0.25, 0.5]], ["v12"]],
    ["Annotate", ["b11", "v12"], ["meta_schedule.unroll_explicit"], []],
    ["Annotate", ["l10", 16], ["pragma_auto_unroll_max_step"], []],
    ["Unannotate", ["b11"], ["meta_schedule.unroll_explicit"], []],
]
DECISIONS = [[2, [8, 4]], [13, 1]]


def parts(size: int = 64, seconds: float = 1e-3) -> dict[str, Any]:
    """Target, workload and record as in a bundle; the program depends on the size."""
    from ansor_deploy.registry.firewall import target_fields

    text = TEXT.replace("SIZE", str(size))
    key = sha256(text)
    return copy.deepcopy(
        {
            "target": target_fields(TARGET.to_json()),
            "workload": {
                "key": key,
                "text": text,
                "op": "relu",
                "family": sha256("relu"),
                "shapes": [[size], [size]],
                "dtypes": ["float32", "float32"],
                "flops": float(size),
                "bytes": 8.0 * size,
            },
            "record": {
                "key": {"workload": key, "target": TARGET.fingerprint},
                "trace": trace(INSTRUCTIONS, DECISIONS),
                "seconds": [seconds, seconds * 2, seconds * 3],
                "proof": {"oracle": "default", "seed": 0, "max_abs_err": 0.0, "max_rel_err": 0.0},
                "provenance": {
                    "tool": "0.2.0",
                    "tvm": TVM,
                    "search": "ansor",
                    "device": "board-1",
                    "seed": 0,
                    "created": "2026-01-31T12:00:00+00:00",
                    "rules": "0" * 64,
                },
            },
        }
    )


def trace(instructions: list[Any], decisions: list[Any]) -> str:
    """The canonical text of a trace."""
    return canonical_json([instructions, decisions])


def identified(record: dict[str, Any]) -> str:
    """The line of a record with the id of its content, even if that is invalid."""
    return canonical_json({"id": sha256(canonical_json(record)), "record": record})


def lines(*several: dict[str, Any]) -> list[str]:
    """The sorted lines of a bundle with such parts, without the header."""
    found = {identified(one["record"]) for one in several}
    found |= {canonical_json({"target": one["target"]}) for one in several}
    found |= {canonical_json({"workload": one["workload"]}) for one in several}
    return sorted(found)


def content(entries: Iterable[str]) -> bytes:
    """The bytes of a bundle of these lines."""
    return "".join(f"{line}\n" for line in [HEADER, *entries]).encode()


def bundle(*sizes: int, seconds: float = 1e-3) -> Bundle:
    """A valid bundle with a record for each size."""
    return read_bundle(content(lines(*(parts(size, seconds) for size in sizes))), "sample")


def record(size: int = 64, seconds: float = 1e-3) -> Record:
    """A valid record."""
    (found,) = bundle(size, seconds=seconds).records.values()
    return found


def registry(path: Path, *sizes: int, seconds: float = 1e-3, ended: bool = False) -> Path:
    """A registry with a record for each size. ended: whether its searches have ended."""
    found = bundle(*sizes, seconds=seconds)
    when = "2026-01-31T12:00:00+00:00"
    ends = [
        SearchEnd(one.key, TVM, "ansor", 64, "limit", 64, when)
        for one in (found.records.values() if ended else ())
    ]
    take_in(path, Bundle(found.targets, found.workloads, found.records, set(ends)))
    return path


def exported(path: Path) -> bytes:
    """A whole registry as a bundle, with nothing left out."""
    found, left_out = contents(path)
    assert left_out == []
    return found.to_bytes()
