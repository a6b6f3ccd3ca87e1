"""What makes TVM's import fast and safe, until `_tvm` has imported it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import LazyLoader
from typing import Any


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set environment variables for the time of the context, except those that the user has set."""
    mine = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name in mine:
            del os.environ[name]


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute of TVM, or of a library that it calls, for the time of the context.

    unittest.mock is not used because it would load asyncio in every build.
    """
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _names_of_globals() -> Callable[[str], list[str]]:
    """A function that lists a namespace's functions, and reads names only if one was added."""
    from tvm_ffi import get_global_func

    names: list[str] = []
    of_each: dict[str, list[str]] = {}

    def listed(namespace: str) -> list[str]:
        name = get_global_func("ffi.FunctionListGlobalNamesFunctor")()
        if name(-1) != len(names):
            names[:] = [name(number) for number in range(name(-1))]
            of_each.clear()
            for one in names:
                of_each.setdefault(one.rpartition(".")[0], []).append(one)
        return of_each.get(namespace, [])

    return listed


class _UnusedModules:
    """Finds modules that TVM imports and does not use here: they are loaded when first used."""

    @staticmethod
    def find_spec(name: str, path: Any, target: Any = None) -> Any:
        """The module's spec; None for modules that are used."""
        if name != "tvm.s_tir.dlight":  # default schedules for GPUs
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def without_repetition() -> Iterator[None]:
    """Avoid repeated and needless work during TVM's import.

    Fifty modules of TVM look for their functions among the names of all global functions, with one
    call into C++ for each. The garbage collector looks again and again through objects that stay.
    Together these take a third of the import's time.
    """
    import tvm_ffi

    listed, registry, define = _names_of_globals(), tvm_ffi.registry, tvm_ffi.init_ffi_api

    def defined(namespace: str, module: str | None = None) -> None:
        own = listed(namespace.removeprefix("tvm."))
        with replaced(registry, "list_global_func_names", lambda: own):
            define(namespace, module)

    collects = gc.isenabled()
    gc.disable()
    sys.meta_path.insert(0, _UnusedModules)
    try:
        with replaced(tvm_ffi, "init_ffi_api", defined):
            yield
    finally:
        sys.meta_path.remove(_UnusedModules)
        if collects:
            gc.enable()
