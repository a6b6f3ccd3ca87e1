"""Check that the runtime shipped with a library has every function that the library calls by name.

TVM's operators may call functions of its extras, such as its sorts, or of its Python package. These
exist while a library is built, but not where it runs.
"""

from functools import lru_cache
from typing import Any

from .._tvm import collect, op_name, relax, tirx, tvm
from ..errors import ModelError
from ..model.relax.extract import readable
from ..runtime import native
from .memory.callers_memory import original

_BY_NAME = {"tirx.tvm_call_packed", "tirx.tvm_call_packed_lowered", "tirx.tvm_call_cpacked"}


def check_calls(mod: tvm.IRModule) -> None:
    """ModelError where a lowered module, its kernels included, calls what the runtime lacks."""
    for name, func in mod.functions.items():
        for called in sorted(_called(func)):
            if not _is_there(called):
                of_kernel = isinstance(func, tirx.PrimFunc)
                what = readable(original(name.name_hint)) if of_kernel else "the model"
                raise ModelError(
                    f"{what} calls {called}, which the runtime that libraries ship with lacks",
                    "report the model, please: nothing could run its library",
                )


def _called(func: Any) -> set[str]:
    """The names of functions that a function looks up when it runs."""
    if isinstance(func, tirx.PrimFunc):
        calls = collect(func.body, tvm.ir.Call)
        return {str(one.args[0].value) for one in calls if op_name(one) in _BY_NAME}
    return {str(one.global_symbol) for one in collect(func, relax.ExternFunc)}


@lru_cache(maxsize=256)
def _is_there(name: str) -> bool:
    """Whether the runtime's file contains the name as a string: it does for all it registers."""
    return name.encode() + b"\0" in _runtime()


@lru_cache(maxsize=1)
def _runtime() -> bytes:
    return native.library().read_bytes()
