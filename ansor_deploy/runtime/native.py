"""TVM's runtime library without the compiler: its functions, and tensors in its memory.

The package `tvm` is never imported; only its library libtvm_runtime.so is loaded. A compiler that
is imported before or later uses this same library, not a second copy.
"""

import ctypes
import os
import struct
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import AnsorError
from .tensors import numpy_dtype
from .wrong_processor import wrong_processor

_CPU = 1  # DLPack's device type
_LIBRARY = "libtvm_runtime.so"
# How often a thread of TVM's pool looks for work before it sleeps. That takes a third of a
# millisecond; by default it would spin for a tenth of a second and slow down a compiler meanwhile.
_SPINS = "1000"
# The files that were loaded as libraries, by path, in order: device and inode. They stay loaded.
_LOADED: dict[Path, list[tuple[int, int]]] = {}


@lru_cache(maxsize=1)
def ffi() -> Any:
    """The module tvm_ffi, with the runtime's functions among its global functions."""
    import tvm_ffi

    if tvm_ffi.get_global_func("runtime.config_threadpool", allow_missing=True) is None:
        ctypes.CDLL(str(library()), ctypes.RTLD_GLOBAL)
    return tvm_ffi


def use_cores(count: int) -> None:
    """Let kernels use so many of the processors that this process may use.

    By default, TVM uses half of an x86 machine's processors, because of hyper-threads, and pins
    each thread of its pool to one of them, where it starves beside other work. Here the threads
    share all processors.
    """
    allowed = sorted(os.sched_getaffinity(0))
    width = max(1, min(count, len(allowed)))
    os.environ["TVM_NUM_THREADS"] = str(width)
    os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", _SPINS)
    shared = -3  # mode "kSpecifyThreadShareAllCore" of TVM's threading_backend.h
    processors = [str(cpu) for cpu in allowed]
    ffi().get_global_func("runtime.config_threadpool")(shared, width, processors)


def use_threads(module: Any, count: int) -> None:
    """Let the loops of a loaded library use so many of the threads that all libraries share.

    It does nothing for a GPU's library, which has no such loops.
    """
    if module.implements_function("use_threads", query_imports=True):
        module.get_function("use_threads", query_imports=True)(count)


def choose_code(module: Any, path: Path, wanted: int | None) -> int:
    """Choose the code of a loaded library that this processor runs, before any of it has run.

    Returns its number: that of the best, or the wanted one. DeviceError where there is none.
    """
    asked = () if wanted is None else (wanted,)
    try:
        return int(module.get_function("choose_code", query_imports=True)(*asked))
    except RuntimeError as error:
        raise wrong_processor(str(error), path) or error from error


def library() -> Path:
    """The path of TVM's runtime library, in the package `tvm`, which is not imported."""
    spec = find_spec("tvm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder, "lib", _LIBRARY)).is_file():
            return path
    raise AnsorError(
        f"TVM's runtime ({_LIBRARY}) is not installed for this Python",
        "run: pip install 'apache-tvm==0.27.0.post1'",
    )


def load_module(path: str | Path) -> Any:
    """A shared library that TVM made; OSError or RuntimeError where it cannot be loaded.

    It stays in the process, since objects that it returned may outlive the last reference to it.
    """
    return ffi().load_module(_own_name(Path(path).resolve()))


def _own_name(path: Path) -> str:
    """A path of a library that the system's loader has not used for another file.

    The loader recognises libraries by path. For a path whose file was replaced, it would return the
    old one: old code, with the new weights.
    """
    status = path.stat()
    file, known = (status.st_dev, status.st_ino), _LOADED.setdefault(path, [])
    if file not in known:
        known.append(file)
    return "/".join([str(path.parent), *["."] * known.index(file), path.name])


def tensor(values: np.ndarray) -> Any:
    """A tensor with a copy of the values, in memory that is aligned as kernels expect."""
    made = empty(values.shape, str(values.dtype))
    fill(made, values)
    return made


def empty(shape: Sequence[int], dtype: str) -> Any:
    """A tensor with uninitialised elements."""
    lib = ffi()
    alloc = lib.get_global_func("runtime.TVMTensorAllocWithScope")
    return alloc(lib.Shape([int(n) for n in shape]), lib.dtype(dtype), lib.device("cpu", 0), None)


def view(memory: np.ndarray, shape: Sequence[int], dtype: str) -> Any:
    """A tensor in the memory of an array of bytes."""
    lib = ffi()
    make = lib.get_global_func("runtime.TVMTensorCreateView")
    return make(lib.from_dlpack(memory), lib.Shape([int(n) for n in shape]), lib.dtype(dtype), 0)


def mapped(path: Path, size: int) -> Any:
    """A tensor of the last `size` bytes of a file, in its mapped pages, which processes share.

    OSError where the file is shorter.
    """
    place = path.stat().st_size - size
    if place < 0:
        raise OSError("its weights are cut short")
    return ffi().from_dlpack(np.memmap(path, np.uint8, "c", place, (size,)))


def fill(target: Any, values: np.ndarray) -> None:
    """Copy an array of the tensor's shape and type into the tensor."""
    flat = np.ascontiguousarray(values)
    copy = ffi().get_global_func("runtime.TVMTensorCopyFromBytes")
    copy(target, flat.ctypes.data_as(ctypes.c_void_p), flat.nbytes)


def array(source: Any) -> np.ndarray:
    """A copy of a tensor."""
    made = np.empty(tuple(source.shape), numpy_dtype(str(source.dtype)))
    copy_to(made, source)
    return made


def copy_to(target: np.ndarray, source: Any) -> None:
    """Copy a tensor into a contiguous array of its shape and type."""
    copy = ffi().get_global_func("runtime.TVMTensorCopyToBytes")
    copy(source, target.ctypes.data_as(ctypes.c_void_p), target.nbytes)


def borrowed(values: np.ndarray) -> Any:
    """A tensor in an array's own memory, valid as long as the array.

    None where that is impossible: the array is not contiguous, not aligned to its elements, not
    writable, or of a type that DLPack lacks.
    """
    if not values.flags.carray:
        return None
    try:
        return ffi().from_dlpack(values)
    except BufferError:
        return None


def times(
    module: Any, function: str, arguments: Sequence[Any], number: int, repeat: int
) -> list[float]:
    """Seconds a call, averaged over `number` calls, `repeat` times; one call before is not timed.

    The runtime's own loop and clock are used, so no Python runs between the calls.
    """
    make = ffi().get_global_func("runtime.RPCTimeEvaluator")
    # Its other options are off: no minimum duration, no pauses, no cache flushes.
    timer = make(module, function, _CPU, 0, number, repeat, 0, 100, 0, 1, 0, "")
    return list(struct.unpack(f"@{repeat}d", timer(*arguments)))
