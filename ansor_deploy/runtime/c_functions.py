"""The functions of a library through the C API, where TVM's Python package is not installed.

In ansor_deploy_runtime it replaces `functions.py`; its libraries lie in the package's `lib`.
"""

import ctypes
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from ..errors import AnsorError
from .out_of_range import OUT_OF_RANGE
from .wrong_processor import wrong_processor

_LIBRARIES = Path(__file__).parents[1] / "lib"

Into = Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None]
ON_GPU = None  # the C API takes only tensors in the CPU's memory


class _Values(ctypes.Structure):
    """An `ansor_deploy_input` or `ansor_deploy_output`."""

    _fields_ = (("dtype", ctypes.c_char_p), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


def into_functions(
    path: Path, count: int, threads: int, code: int | None = None
) -> tuple[int, list[Into], Callable[[int], None]]:
    """The number of a library's code, its functions, one an interface, and a setter of its threads.

    The functions take inputs, and outputs to write to: arrays of the right shapes and types;
    outputs are contiguous. threads: those of a call; 0 for as many as the target has cores. code:
    the number of the code to run; None for the best. AnsorError where this machine cannot load it,
    DeviceError where the processor lacks features that it needs.
    """
    model = _Model(path, threads, -1 if code is None else code)
    return model.code, [partial(model.run, variant) for variant in range(count)], model.use_threads


class _Model:
    """A library loaded by the C API; not for two threads at once."""

    def __init__(self, path: Path, threads: int, code: int) -> None:
        api = _api()
        self._api = api
        self._model = api.ansor_deploy_load_code(bytes(path), code)
        if not self._model:
            why = self._last_error()
            if (error := wrong_processor(why, path)) is not None:
                raise error
            hint = "it may be built for another machine: see `target` in its manifest"
            raise AnsorError(f"cannot be loaded: {why}", hint, path)
        weakref.finalize(self, api.ansor_deploy_free, self._model)
        self.code = int(api.ansor_deploy_code(self._model))
        self._path = path
        if threads:
            self.use_threads(threads)

    def use_threads(self, count: int) -> None:
        """Let a call take so many threads; AnsorError for fewer than one."""
        if self._api.ansor_deploy_use_threads(self._model, count) != 0:
            raise AnsorError(self._last_error(), file=self._path)

    def run(
        self, variant: int, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]
    ) -> None:
        """Run once; IndexError where the inputs hold an index that is out of range."""
        kept = [np.ascontiguousarray(one) for one in inputs]  # kept alive during the call
        given, made = _values(kept), _values(outputs)
        words = (self._model, variant, given, len(given), made, len(made))
        if self._api.ansor_deploy_run_variant(*words) != 0:
            why = self._last_error()
            if found := OUT_OF_RANGE.search(why):
                raise IndexError(found[0])
            raise AnsorError(why, "compare the deployed files: sha256sum -c SHA256SUMS")

    def _last_error(self) -> str:
        return str(self._api.ansor_deploy_last_error().decode(errors="replace"))


def _values(arrays: Sequence[np.ndarray]) -> ctypes.Array[_Values]:
    made = (_Values * len(arrays))()
    for value, one in zip(made, arrays, strict=True):
        value.dtype, value.data, value.bytes = str(one.dtype).encode(), one.ctypes.data, one.nbytes
    return made


@lru_cache(maxsize=1)
def _api() -> ctypes.CDLL:
    """The C API; AnsorError where this machine cannot load it."""
    try:
        for name in ("libtvm_ffi.so", "libtvm_runtime.so"):
            ctypes.CDLL(str(_LIBRARIES / name), ctypes.RTLD_GLOBAL)  # libraries use their symbols
        api = ctypes.CDLL(str(_LIBRARIES / "libansor_deploy.so"))
    except OSError as error:
        hint = "it needs libstdc++.so.6 (Debian: apt-get install libstdc++6)"
        raise AnsorError(f"TVM's runtime cannot be loaded: {error}", hint) from error
    size, model, many = ctypes.c_size_t, ctypes.c_void_p, ctypes.POINTER(_Values)
    api.ansor_deploy_load_code.argtypes = [ctypes.c_char_p, ctypes.c_int]
    api.ansor_deploy_load_code.restype = model
    api.ansor_deploy_code.argtypes = [model]
    api.ansor_deploy_free.argtypes, api.ansor_deploy_free.restype = [model], None
    api.ansor_deploy_use_threads.argtypes = [model, ctypes.c_int]
    api.ansor_deploy_run_variant.argtypes = [model, size, many, size, many, size]
    api.ansor_deploy_last_error.restype = ctypes.c_char_p
    return api
