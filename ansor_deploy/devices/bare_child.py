"""The child's side of `bare.py`: it runs libraries in a process with TVM's runtime alone.

Importing TVM fails here, as it does where a library is deployed.
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

native.ffi()  # load the runtime now, since its package `tvm` cannot be found after the next line
sys.modules["tvm"] = None  # type: ignore[assignment]  # importing it fails

_M_PERTURB = -6  # from glibc's malloc.h


def run(payload: dict[str, Any]) -> None:
    """Run a library once.

    payload: "library", which is its unique number, its path, the fields of its manifest that
    calling it needs as JSON text, threads, and the number of its code; "interface", that of this
    run; and "memory", a file with room for these tensors (`in_memory`), inputs before outputs, to
    which the results are written.
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
    """Let the C library fill new memory, so that unwritten elements are not right by chance.

    It uses glibc's `mallopt`; with other C libraries it does nothing.
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
