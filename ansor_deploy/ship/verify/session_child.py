"""The child's side of `session.py`: ONNX Runtime, in a process that it may end."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.tensors import in_memory, memory_bytes
from ...system.child import ask
from ...system.machine_fault import raise_if_fault
from .onnx_runtime import open_session, version

version()  # imports ONNX Runtime while the parent goes on
_sessions: dict[int, Any] = {}


def load(payload: dict[str, Any]) -> dict[str, str]:
    """The "engine" that has loaded a model; or by which words it is "refused".

    payload: "model", a file; "number", by which it is run; "wanted", the numbers of those that are
    still to be run; "threads" and "as_written", as `open_session` takes them.
    """
    for number in _sessions.keys() - set(payload["wanted"]):
        del _sessions[number]
    ways = {"judging": True, "as_written": payload["as_written"]}
    try:
        session = open_session(payload["model"], payload["threads"], **ways)
    except Exception as error:  # noqa: BLE001 - whatever it raises is what it says of the model
        return _refusal(error)
    _sessions[payload["number"]] = session
    return {"engine": f"onnxruntime {version()}"}


def run(payload: dict[str, Any]) -> dict[str, Any]:
    """The names, shapes and types of the "outputs" of a run; or by which words it is "refused".

    payload: "number", of a model that was loaded; "memory", a file of the inputs, behind which the
    outputs are written; "inputs", their names, shapes and types. Nothing is answered where another
    process had loaded the model.
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
    ask(memory_bytes([*kinds, *found]))  # that the file has room for them
    memory = np.memmap(payload["memory"], np.uint8, "r+")
    for place, one in zip(in_memory(memory, [*kinds, *found])[len(kinds) :], made, strict=True):
        place[...] = one
    return {"outputs": [output.name for output in session.get_outputs()], "kinds": found}


def _type_of(made: Any) -> str:
    if not isinstance(made, np.ndarray) or made.dtype.hasobject:
        raise TypeError("it makes what is no tensor of numbers")
    return made.dtype.name


def _refusal(error: Exception) -> dict[str, str]:
    """What ONNX Runtime says, in a line; what the machine is at fault for is raised."""
    raise_if_fault(error)
    return {"refused": (str(error).strip() or type(error).__name__).splitlines()[0]}
