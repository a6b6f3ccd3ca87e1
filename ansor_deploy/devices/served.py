"""Whole libraries in the run worker of a site; `devices.model` calls these functions."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..runtime import cpu_pinning, native
from ..runtime.model import Model
from ..runtime.tensors import from_bytes, to_bytes


def threads(payload: dict[str, Any]) -> int:
    """The number of threads that a kernel gets; the answer shows that the runtime is whole."""
    return int(native.ffi().get_global_func("runtime.NumThreads")())


def run(payload: dict[str, Any]) -> None:
    """Run a library once.

    payload: its "path", the parts of its "manifest" that say its tensors and cores, "inputs", a
    file of `to_bytes`, and "outputs", a file to write likewise.
    """
    model, inputs = _model(payload), _inputs(payload)
    outputs = model(**inputs)
    data = to_bytes([outputs[info.name] for info in model.outputs])
    Path(payload["outputs"]).write_bytes(data)


def times(payload: dict[str, Any]) -> list[float]:
    """Seconds of each of "runs" runs; the rest of the payload is that of `run`."""
    return _model(payload).times(_inputs(payload), payload["runs"])


def _model(payload: dict[str, Any]) -> Model:
    return _loaded(payload["path"], json.dumps(payload["manifest"]))


@lru_cache(maxsize=2)  # two, to be timed in turns
def _loaded(path: str, manifest: str) -> Model:
    cpu_pinning.release()
    return Model(Path(path), json.loads(manifest))


def _inputs(payload: dict[str, Any]) -> dict[str, Any]:
    return _read(payload["inputs"], json.dumps(payload["manifest"]["inputs"]))


@lru_cache(maxsize=2)
def _read(path: str, kinds: str) -> dict[str, Any]:
    entries = json.loads(kinds)
    shapes = [(tuple(entry["shape"]), entry["dtype"]) for entry in entries]
    arrays = from_bytes(Path(path).read_bytes(), shapes)
    return {entry["name"]: one for entry, one in zip(entries, arrays, strict=True)}
