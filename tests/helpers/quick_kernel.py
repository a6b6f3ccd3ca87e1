"""Takes the place of `kernel` in compile workers: LLVM hardly optimises.

Workers are shared, also with tests whose kernels are optimised: so each call ends as it began.
pytest is not imported, which each worker would wait for.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ansor_deploy._tvm import tvm
from ansor_deploy._tvm_import import replaced
from ansor_deploy.codegen.kernels import kernel, lowering

_described = lowering._described


def compile_kernel(payload: dict[str, Any]) -> str:
    with hurry():
        return kernel.compile_kernel(payload)


def hurry() -> AbstractContextManager[None]:
    return replaced(lowering, "_described", _in_a_hurry)


def _in_a_hurry(functions: Any, target: Any) -> Any:
    described = _described(functions, target)
    if described.kind.name != "llvm":
        return described
    return tvm.target.Target({"kind": "llvm", **dict(described.attrs.items()), "opt-level": 0})
