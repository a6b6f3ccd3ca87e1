"""Runs on the board: call a function of a library, or a whole model, on arrays from a file.

    python3 on_board.py LIBRARY FUNCTION IN.npz OUT.npz

The arguments of FUNCTION are the arrays of IN.npz, in order; OUT.npz gets all of them afterwards.
"main" is the model's function: it gets its weights from the file's end, and OUT.npz gets its
results. Prints the seconds of a second call.
"""

import ctypes
import sys
import time
from pathlib import Path

import numpy as np
import tvm_ffi

CPU, POOLED = 1, 2


def main(library, function, given, wanted):
    runtime = Path(tvm_ffi.__file__).parents[1] / "tvm" / "lib" / "libtvm_runtime.so"
    ctypes.CDLL(str(runtime), ctypes.RTLD_GLOBAL)
    tvm_ffi.get_global_func("runtime.config_threadpool")(-3, 2)
    with np.load(given) as file:
        tensors = [tvm_ffi.from_dlpack(aligned(file[name])) for name in file.files]
    module = tvm_ffi.load_module(library)
    if function == "main":
        module = module["vm_load_executable"]()
        module["vm_initialization"](CPU, 0, POOLED)
        block = np.fromfile(library, np.uint8)[-module["weights_size"]() :]
        views = module["main_weights"](tvm_ffi.from_dlpack(aligned(block)))
        module["save_function"]("main", "main", True, *views)
    call = module[function]
    call(*tensors)
    began = time.perf_counter()
    result = call(*tensors)
    print(time.perf_counter() - began)
    several = result if isinstance(result, tvm_ffi.Array) else [result]
    outputs = several if function == "main" else tensors
    np.savez(wanted, *(np.from_dlpack(output) for output in outputs))


def aligned(array):
    """The array in memory aligned to 64 bytes, as kernels expect."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


if __name__ == "__main__":
    main(*sys.argv[1:])
