"""Run whole libraries in a site's run worker; `devices.remote_model` calls these functions."""

import itertools
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime import cpu_pinning, native
from ..runtime.interface import Interface, TensorInfo
from ..runtime.model import Model
from ..runtime.profile import measure
from ..runtime.tensors import from_bytes, numpy_dtype, to_bytes
from .arrivals import arrivals, span, summed_up
from .arrivals import serve as serve_requests


def threads(payload: dict[str, Any]) -> int:
    """The number of threads that a kernel gets; an answer shows that the runtime works."""
    return int(native.ffi().get_global_func("runtime.NumThreads")())


def run(payload: dict[str, Any]) -> None:
    """Run a library once.

    payload: its "path"; "manifest", the JSON text of the fields of its manifest that calling it
    needs; "interface", the JSON text of this run's interface; "inputs", a file of `to_bytes`; and
    "outputs", such a file to write.
    """
    model = _model(payload["path"], payload["manifest"])
    outputs = model.whole(**_given(payload))
    gives = _interface(payload["interface"]).outputs
    Path(payload["outputs"]).write_bytes(to_bytes([outputs[info.name] for info in gives]))


def times(payload: dict[str, Any]) -> list[float]:
    """Seconds of each of "runs" runs; the rest of the payload is that of `run`."""
    return _model(payload["path"], payload["manifest"]).times(_given(payload), payload["runs"])


def profile(payload: dict[str, Any]) -> dict[str, Any]:
    """The figures of a profile of about "seconds" seconds; the payload is otherwise as in `run`."""
    model = _model(payload["path"], payload["manifest"])
    return measure(model, _given(payload), payload["seconds"])


def serve(payload: dict[str, Any]) -> dict[str, Any]:
    """The figures of requests that come at "rate" for "seconds"; each is a run.

    "feeds": each has an "interface" and "inputs" as in `run`; the requests take turns in them.
    """
    model = _model(payload["path"], payload["manifest"])
    feeds = [_given(one) for one in payload["feeds"]]
    for inputs in feeds:
        model.times(inputs, 1)  # the first run of a library takes longer
    coming = arrivals(payload["rate"], payload["seconds"])
    ends, begin = span(coming, payload["seconds"]), time.monotonic()

    def one(at: int) -> float:
        return model.times(feeds[at % len(feeds)], 1)[0]

    times = serve_requests(coming, begin, begin + ends, itertools.count(), one)
    return asdict(summed_up(times, len(coming), ends))


def bytes_of(tensors: Sequence[TensorInfo]) -> int:
    """How many bytes `to_bytes` writes for these tensors."""
    return sum(math.prod(info.shape) * numpy_dtype(info.dtype).itemsize for info in tensors)


def by_name(tensors: Sequence[TensorInfo], data: bytes) -> dict[str, np.ndarray]:
    """The arrays that `to_bytes` wrote for these tensors, by their names."""
    arrays = from_bytes(data, [(info.shape, info.dtype) for info in tensors])
    return {info.name: one for info, one in zip(tensors, arrays, strict=True)}


@lru_cache(maxsize=2)  # two, to be timed in turns
def _model(path: str, manifest: str) -> Model:
    cpu_pinning.release()
    return Model(Path(path), json.loads(manifest))


def _given(payload: dict[str, Any]) -> dict[str, np.ndarray]:
    return _inputs(payload["inputs"], payload["interface"])


@lru_cache(maxsize=2)
def _inputs(path: str, interface: str) -> dict[str, np.ndarray]:
    return by_name(_interface(interface).inputs, Path(path).read_bytes())


def _interface(text: str) -> Interface:
    return Interface.from_json(json.loads(text))
