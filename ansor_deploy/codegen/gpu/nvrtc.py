"""Compile CUDA C++ with NVIDIA's runtime compiler, NVRTC: no toolkit and no GPU is needed.

Its library comes with the extra `cuda`. The version is CUDA 12.9: 13 cannot compile for Volta.
"""

import ctypes
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ...errors import AnsorError

_LIBRARY = "libnvrtc.so.12"
_MESSAGE_CHARS = 500


class CudaError(Exception):
    """The compiler refuses a program; the message is its reason."""


def check() -> None:
    """AnsorError, with the remedy, where the compiler is not installed."""
    _library()


def compiled(source: str, arch: str) -> tuple[bytes, bytes]:
    """Machine code (a cubin) for an architecture, such as "sm_70", and PTX for all newer ones.

    CudaError where the compiler refuses the source.
    """
    lib, program = _library(), ctypes.c_void_p()
    _check(
        lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    )
    options = (ctypes.c_char_p * 2)(f"--gpu-architecture={arch}".encode(), b"--std=c++17")
    try:
        if lib.nvrtcCompileProgram(program, len(options), options) != 0:
            raise CudaError(_complaint(_content("ProgramLog", program).decode(errors="replace")))
        return _content("CUBIN", program), _content("PTX", program)
    finally:
        lib.nvrtcDestroyProgram(ctypes.byref(program))


def version() -> str:
    """The compiler's name and version."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"NVRTC {major.value}.{minor.value}"


def _content(what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _check(getattr(_library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    content = ctypes.create_string_buffer(size.value)
    _check(getattr(_library(), f"nvrtcGet{what}")(program, content))
    return content.raw


def _complaint(log: str) -> str:
    """The first error in a compiler's log."""
    lines = [line.strip() for line in log.splitlines() if "error" in line]
    return (lines or [log.strip() or "the compiler gives no reason"])[0][:_MESSAGE_CHARS]


def _check(status: int) -> None:
    if status != 0:
        raise CudaError(f"the compiler fails with status {status}")


@cache
def _library() -> ctypes.CDLL:
    spec = find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder, "cuda_nvrtc", "lib", _LIBRARY)).is_file():
            return ctypes.CDLL(str(path))
    raise AnsorError(
        f"NVIDIA's compiler ({_LIBRARY}) is not installed for this Python",
        "run: pip install 'ansor-deploy[cuda]' (no GPU is needed to build)",
    )
