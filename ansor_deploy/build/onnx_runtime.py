"""ONNX Runtime, which libraries are verified against and timed beside: the one door to it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def version() -> str:
    """Of the one that is installed."""
    return str(_module().__version__)


def open_session(model: Path | bytes, threads: int, *, spins: bool = True) -> Any:
    """A model ready to run on this machine's processor; raises what ONNX Runtime does.

    model: a file, or what is in one. threads: 0 for all cores. spins: whether its idle threads do,
    for a while.
    """
    module = _module()
    options = module.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1  # operators run one after another: there is no such pool
    if not spins:
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return module.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _module() -> Any:
    # It would keep an identifier of this machine in the home directory, and call its makers.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime
