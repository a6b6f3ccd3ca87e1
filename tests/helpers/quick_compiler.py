"""Kernels that LLVM hardly optimises, which otherwise takes half of a small model's build.

The code is slower and larger; its integer results are the same, its floats up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ansor_deploy.codegen.kernels import object_cache, objects
from ansor_deploy.measure import builder

_generator = object_cache._generator


@contextmanager
def quick_compiler() -> Iterator[None]:
    """Build libraries of such kernels, which are cached apart from all others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "_COMPILES", "helpers.quick_kernel")
        patch.setattr(builder, "BUILDS", "helpers.quick_candidate")
        patch.setattr(object_cache, "_generator", lambda: [*_generator(), __name__])
        yield
