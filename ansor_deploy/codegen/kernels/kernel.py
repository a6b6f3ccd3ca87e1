"""Compile one scheduled program to machine code in a worker, within limits."""

import base64
import os
from typing import Any

from ..._tvm import from_json_graph_str
from ...runtime.gpu_code import GpuKernel
from ...system.limits import limit_memory, limit_processor
from ...target import Target, target_of
from ..gpu.machine_code import gpu_kernel
from .heap import CpuKernel, Heap
from .lowering import code_generation, compiled


def compile_kernel(payload: dict[str, Any]) -> str:
    """The bytes of a `CpuKernel` or a `GpuKernel`, in base64; raises what TVM raised.

    payload: "program", a PrimFunc as TVM's JSON; "symbol"; "target", as JSON text; and "seconds" of
    processor time, after which the system ends the process.
    """
    limit_memory(0)
    limit_processor(payload["seconds"])
    target = target_of(payload["target"])
    symbol, heap = payload["symbol"], Heap(target.cores)
    with code_generation(target, heap):
        # TVM's `load_json` also checks the version that wrote it, which takes far longer.
        func = from_json_graph_str(payload["program"]).with_attr("global_symbol", symbol)
        made: CpuKernel | GpuKernel
        if target.gpu is not None:
            made = gpu_kernel(func, symbol, target, target.gpu.arch)
        else:
            code = object_file({symbol: func}, target)
            made = CpuKernel(heap.bytes, code)
    return base64.b64encode(made.to_bytes()).decode()


def object_file(functions: dict[str, Any], target: Target) -> bytes:
    """The object file of PrimFuncs by symbol, in the caller's pass context."""
    # In memory, where a killed process leaves nothing behind.
    with os.fdopen(os.memfd_create("object"), "rb") as file:
        compiled(functions, target).write_to_file(f"/proc/self/fd/{file.fileno()}", "o")
        return file.read()
