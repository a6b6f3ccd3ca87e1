"""Compile one scheduled program to machine code in a worker, within limits."""

import base64
import os
from typing import Any

from ..._tvm import from_json_graph_str
from ...system.limits import limit_memory, limit_processor
from ...target import Target, target_of
from ..gpu.machine_code import gpu_kernel
from .lowering import code_generation, compiled


def compile_kernel(payload: dict[str, Any]) -> str:
    """The object file of a kernel, in base64; raises what TVM raised.

    For a GPU, it is the bytes of a `GpuKernel`.

    payload: "program", a PrimFunc as TVM's JSON; "symbol"; "target", as JSON text; and "seconds" of
    processor time, after which the system ends the process.
    """
    limit_memory(0)
    limit_processor(payload["seconds"])
    target = target_of(payload["target"])
    with code_generation(target):
        symbol = payload["symbol"]
        # TVM's `load_json` also checks the version that wrote it, which takes far longer.
        func = from_json_graph_str(payload["program"]).with_attr("global_symbol", symbol)
        if target.gpu is not None:
            return base64.b64encode(
                gpu_kernel(func, symbol, target, target.gpu.arch).to_bytes()
            ).decode()
        return base64.b64encode(object_file({symbol: func}, target)).decode()


def object_file(functions: dict[str, Any], target: Target) -> bytes:
    """The object file of PrimFuncs by symbol, in the caller's pass context."""
    # In memory, where a killed process leaves nothing behind.
    with os.fdopen(os.memfd_create("object"), "rb") as file:
        compiled(functions, target).write_to_file(f"/proc/self/fd/{file.fileno()}", "o")
        return file.read()
