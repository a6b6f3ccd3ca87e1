"""The child's side of `session.py`, which runs ONNX Runtime in a process that may crash."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.tensors import in_memory, memory_bytes
from ...system.child import ask
from ...system.machine_fault import raise_if_fault
from .onnx_runtime import open_session, version

version()  # imports ONNX Runtime while the parent does other work
_sessions: dict[int, Any] = {}


def load(payload: dict[str, Any]) -> dict[str, str]:
    """Load a model; {"engine": name and version}, or {"refused": ONNX Runtime's message}.

    payload: "model", a file; "number", by which `run` names the model; "wanted", the numbers of the
    models to keep; "threads" and "as_written", as `open_session` takes them.
    """
    for number in _sessions.keys() - set(payload["wanted"]):
        del _sessions[number]
    ways = {"judging": True, "as_written": payload["as_written"]}
    try:
        session = open_session(payload["model"], payload["threads"], **ways)
    except Exception as error:  # noqa: BLE001 - any exception of ONNX Runtime refuses the model
        return _refusal(error)
    _sessions[payload["number"]] = session
    return {"engine": f"onnxruntime {version()}"}


def run(payload: dict[str, Any]) -> dict[str, Any]:
    """Run a model; {"outputs": names, "kinds": shapes and types}, or {"refused": the message}.

    payload: "number", that of a loaded model; "memory", a file with the inputs, behind which the
    outputs are written; "inputs", their names; "kinds", their shapes and types. The answer is empty
    if the model was loaded by an earlier child.
    """
    if (session := _sessions.get(payload["number"])) is None:
        return {}
    names, kinds = payload["inputs"], payload["kinds"]
    arrays = in_memory(np.memmap(payload["memory"], np.uint8, "r+"), kinds)
    try:
        made = session.run(None, dict(zip(names, arrays, strict=True)))
        found = [(one.shape, _type_of(one)) for one in made]
    except Exception as error:  # noqa: BLE001 - as above
        return _refusal(error)
    ask(memory_bytes([*kinds, *found]))  # to make room for the outputs in the file
    memory = np.memmap(payload["memory"], np.uint8, "r+")
    for place, one in zip(in_memory(memory, [*kinds, *found])[len(kinds) :], made, strict=True):
        place[...] = one
    return {"outputs": [output.name for output in session.get_outputs()], "kinds": found}


def _type_of(made: Any) -> str:
    if not isinstance(made, np.ndarray) or made.dtype.hasobject:
        raise TypeError("it makes what is no tensor of numbers")
    return made.dtype.name


def _refusal(error: Exception) -> dict[str, str]:
    """The answer with ONNX Runtime's message, on one line; a fault of the machine is raised."""
    raise_if_fault(error)
    return {"refused": (str(error).strip() or type(error).__name__).splitlines()[0]}
