"""Kernels that LLVM hardly optimises, which otherwise takes half of a small model's build.

The code is slower and larger; its integer results are the same, its floats up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from ansor_deploy._tvm import tvm
from ansor_deploy.codegen.kernels import candidate, kernel, lowering, object_cache, objects
from ansor_deploy.measure import builder

_described, _generator = lowering._described, object_cache._generator


def compile_kernel(payload: dict[str, Any]) -> str:
    """Takes the place of a compile worker's function of this name."""
    with mock.patch.object(lowering, "_described", _in_a_hurry):
        return kernel.compile_kernel(payload)


def build(payload: dict[str, Any]) -> dict[str, Any]:
    """Takes the place of a build worker's function of this name."""
    with mock.patch.object(lowering, "_described", _in_a_hurry):
        return candidate.build(payload)


def _in_a_hurry(functions: Any, target: Any) -> Any:
    described = _described(functions, target)
    if described.kind.name != "llvm":
        return described
    return tvm.target.Target({"kind": "llvm", **dict(described.attrs.items()), "opt-level": 0})


@contextmanager
def quick_compiler() -> Iterator[None]:
    """Build libraries of such kernels, which are cached apart from all others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "_COMPILES", __name__)
        patch.setattr(builder, "BUILDS", __name__)
        patch.setattr(object_cache, "_generator", lambda: [*_generator(), __name__])
        yield
