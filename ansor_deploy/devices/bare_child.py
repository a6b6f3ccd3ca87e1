"""The child's side of `bare.py`: libraries in a process that has TVM's runtime and nothing more.

Whatever would import TVM here fails, as it does where a library is deployed.
"""

import ctypes
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime import native
from ..runtime.interface import Interface
from ..runtime.model import Model
from ..runtime.tensors import in_memory

native.ffi()  # loads the runtime, which lies in the package that cannot be found hereafter
sys.modules["tvm"] = None  # type: ignore[assignment]  # whatever imports it fails

_M_PERTURB = -6  # of glibc's malloc.h


def run(payload: dict[str, Any]) -> None:
    """Run a library once.

    payload: its "library", which is a number among all, path, the JSON text of the parts of its
    manifest that say its tensors and cores, threads, and the number of its code; "interface", what
    it takes and gives in this run, and "memory", a file with room for these tensors (`in_memory`),
    inputs before outputs, to which the results are written.
    """
    with _no_zeros():
        model, inputs, outputs = _given(payload)
        for name, made in model.whole(**inputs).items():
            outputs[name][...] = made


def times(payload: dict[str, Any]) -> list[float]:
    """Seconds of each of "runs" runs; the rest of the payload is that of `run`."""
    model, inputs, _ = _given(payload)
    return model.times(inputs, payload["runs"])


@contextmanager
def _no_zeros() -> Iterator[None]:
    """Have the C library fill new memory, so that what no kernel writes is not right by chance.

    It is glibc's `mallopt`; others have none.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", lambda option, value: 0)
    set_option(_M_PERTURB, 128)
    try:
        yield
    finally:
        set_option(_M_PERTURB, 0)


def _given(
    payload: dict[str, Any],
) -> tuple[Model, dict[str, np.ndarray], Mapping[str, np.ndarray]]:
    model = _model(*payload["library"])
    one = Interface.from_json(payload["interface"])
    memory = np.memmap(payload["memory"], np.uint8, "r+")
    arrays = in_memory(memory, [(info.shape, info.dtype) for info in (*one.inputs, *one.outputs)])
    names = [info.name for info in one.inputs]
    inputs = dict(zip(names, arrays, strict=False))
    outputs = arrays[len(names) :]
    return model, inputs, dict(zip([info.name for info in one.outputs], outputs, strict=True))


@lru_cache(maxsize=2)  # two, to be timed in turns
def _model(number: int, path: str, manifest: str, threads: int, code: int | None) -> Model:
    return Model(Path(path), json.loads(manifest), threads, code)
