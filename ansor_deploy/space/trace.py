"""Schedules as text: a TVM trace in canonical JSON, and back onto a program.

TVM's own `as_json` leaves index maps (of packed weights) as objects that JSON cannot hold. Here
they are written in TVM's JSON graph format, inside a wrapper by which they are recognised.
"""

import json
import re
from typing import Any

from .._tvm import tvm
from ..system.digest import canonical_json
from .rewriting import rewritten, steps_of

_INDEX_MAP = "ansor_deploy.index_map"
# The beginning of an index map as TVM writes it, with its fields in any order.
_GRAPH = re.compile(r'\{\s*"(root_index|metadata|nodes)":')


def dump(trace: Any) -> str:
    """Canonical JSON of a trace (`tvm.s_tir.schedule.Trace`)."""
    return canonical_json(_plain(trace.as_json()))


def replay(mod: tvm.IRModule, text: str) -> Any:
    """A schedule of the module with the trace applied, after the rewritings that it names.

    RuntimeError (a ScheduleError mostly) where the trace does not fit the program; ValueError
    where it is no trace.
    """
    steps = json.loads(text)
    if not isinstance(steps, list) or not all(isinstance(part, list) for part in steps):
        raise ValueError(f"a trace is a list of instructions and one of decisions: {text[:60]}")
    for step in steps_of(steps[0]) if steps else ():
        mod = rewritten(mod, step)
    sch = tvm.s_tir.Schedule(mod, debug_mask="none")
    tvm.s_tir.schedule.Trace.apply_json_to_schedule(_objects(steps), sch)
    return sch


def _plain(value: Any) -> Any:
    if isinstance(value, str) and _GRAPH.match(value):
        return json.dumps(json.loads(value), separators=(",", ":"))
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tvm.tirx.IndexMap):
        return {_INDEX_MAP: tvm.ir.save_json(value)}
    if isinstance(value, (tvm.tirx.IntImm, tvm.tirx.FloatImm, tvm.ir.StringImm)):
        return value.value
    if hasattr(value, "items"):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value]


def _objects(value: Any) -> Any:
    if isinstance(value, str) and _GRAPH.match(value):
        return _without_inverse(value)
    if isinstance(value, list):
        return [_objects(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {_INDEX_MAP}:
            return tvm.ir.load_json(value[_INDEX_MAP])
        return {key: _objects(item) for key, item in value.items()}
    return value


def _without_inverse(text: str) -> str:
    """An index map without the inverse that MetaSchedule stores in it.

    TVM would trust a wrong inverse and index buffers by it; the one that it computes is right.
    """
    graph = json.loads(text)
    nodes = graph["nodes"]
    nothing = next((at for at, node in enumerate(nodes) if node["type"] == "None"), None)
    for node in nodes:
        if node["type"] == "tirx.IndexMap":
            node["data"]["inverse_index_map"] = nothing
    return json.dumps(graph)
