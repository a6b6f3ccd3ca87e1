"""Libraries of random layout graphs, compared with ONNX Runtime, and run with fences."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, helper

from ansor_deploy.errors import AnsorError
from benchmarks.fuzz.conformance_cases import build, shipped_target
from benchmarks.fuzz.conformance_cases import fault as differs
from benchmarks.fuzz.fences import faults, traced
from benchmarks.fuzz.layout_graphs import beginning, graph
from benchmarks.options import cores


def attempt(payload: dict[str, Any]) -> dict[str, Any]:
    """Build and try the graph of {"seed"} for a {"target"} in a new {"folder"}.

    Returns {"end": "done", "wrong" or "refused"; "said": what is wrong, or why; "seconds"}.
    """
    began = time.perf_counter()
    proto, exact = graph(payload["seed"])
    folder = Path(payload["folder"])
    (folder / "net.onnx").write_bytes(proto.SerializeToString())
    end = "done"
    try:
        if said := fault(proto, exact, payload["target"], folder):
            end, said = "wrong", said + _first(proto, exact, payload["target"], folder)
    except AnsorError as error:
        end, said = "refused", str(error)
    return {"end": end, "said": said, "seconds": time.perf_counter() - began}


def fault(proto: ModelProto, exact: bool, target: str, folder: Path) -> str:
    """What a model's library does wrong, or "". exact: whether all bits must match."""
    library = folder / "net.so"
    build(proto, replace(shipped_target(target), cores=min(2, cores())), library)
    feeds = _feeds(proto)
    run = traced(library, list(feeds.values()))
    for have, want in zip(run.outputs, _expected(proto, feeds), strict=True):
        if exact and have.tobytes() != want.tobytes():
            return f"{np.count_nonzero(have != want)} of {want.size} elements are others"
        if why := differs(have, want):
            return str(why)
    return "; ".join(faults(run, folder / "kernel.txt"))


def _first(proto: ModelProto, exact: bool, target: str, folder: Path) -> str:
    """The shortest beginning of a graph that fails. Each of its libraries gets its own file."""
    operators = [node.op_type for node in proto.graph.node]
    for count in range(1, len(operators)):
        (inside := folder / str(count)).mkdir()
        if fault(beginning(proto, count), exact, target, inside):
            return f": {', '.join(operators[:count])}"
    return f": {', '.join(operators)}"


def _feeds(proto: ModelProto) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    feeds = {}
    for value in proto.graph.input:
        kind = value.type.tensor_type
        shape = [one.dim_value for one in kind.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        feeds[value.name] = (rng.standard_normal(shape) * 40).astype(dtype)
    return feeds


def _expected(proto: ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feeds))
