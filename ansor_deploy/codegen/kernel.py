"""A compile worker makes an object file of one scheduled program, within limits."""

import base64
import json
import os
from functools import lru_cache
from typing import Any

from .._tvm import tvm
from ..system.limits import limit_memory, limit_processor
from ..target import Target
from .lowering import code_generation, compiled


def compile_kernel(payload: dict[str, Any]) -> str:
    """The object file, in base64, of a kernel; or raises what TVM raised.

    payload: "program", a PrimFunc as TVM's JSON; "symbol"; "target", as JSON text; and "seconds" of
    processor time, after which the system ends the process.
    """
    limit_memory(0)
    limit_processor(payload["seconds"])
    target = _target(payload["target"])
    with code_generation(target):
        func = tvm.ir.load_json(payload["program"]).with_attr("global_symbol", payload["symbol"])
        return base64.b64encode(object_file({payload["symbol"]: func}, target)).decode()


def object_file(functions: dict[str, Any], target: Target) -> bytes:
    """The object file of PrimFuncs by symbol, in the caller's pass context."""
    # In memory, where a killed process leaves nothing behind.
    with os.fdopen(os.memfd_create("object"), "rb") as file:
        compiled(functions, target).write_to_file(f"/proc/self/fd/{file.fileno()}", "o")
        return file.read()


@lru_cache(maxsize=2)
def _target(text: str) -> Target:
    return Target.from_json(json.loads(text))
