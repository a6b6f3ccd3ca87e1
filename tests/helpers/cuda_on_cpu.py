"""A stand-in for a GPU: kernels in CUDA C++ are compiled for this machine, and run by our driver.

A library's host code, its program and the source of its kernels are the real ones. NVIDIA's machine
code and driver are not tested.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Iterable
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

from ansor_deploy.codegen import model
from ansor_deploy.codegen.gpu import nvrtc
from ansor_deploy.codegen.gpu.machine_code import gpu_source
from ansor_deploy.codegen.kernels import candidate
from ansor_deploy.codegen.kernels.lowering import code_generation
from ansor_deploy.codegen.kernels.objects import Kernel, Refusal
from ansor_deploy.runtime.gpu_code import GpuKernel
from ansor_deploy.system.digest import sha256
from ansor_deploy.target import Target

FOLDER = Path(__file__).with_name("cuda_on_cpu")
_KERNEL = re.compile(
    r'^extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\((.*)\);$', re.MULTILINE
)


def compile_driver(folder: Path) -> Path:
    """Compile the driver, for a process that preloads it; ANSOR_GPU names the GPU that it has."""
    path = folder / "libcuda.so.1"
    _compile([str(FOLDER / "driver.cc"), "-Wl,-soname,libcuda.so.1", "-ldl"], path)
    return path


@cache
def driver(folder: Path) -> ctypes.CDLL:
    """The driver, which everything that loads libcuda.so.1 in this process gets from now on.

    It is the first of that name in this process, perhaps from an earlier test.
    """
    ctypes.CDLL(str(compile_driver(folder)), ctypes.RTLD_GLOBAL)
    return ctypes.CDLL("libcuda.so.1")


def be_a_gpu(lib: ctypes.CDLL, arch: str) -> None:
    """Give the driver a GPU of an architecture; none where that is empty."""
    (ctypes.c_char * 16).in_dll(lib, "ansor_gpu").value = arch.encode()


class LentByGpu:
    """An array that DLPack says is in GPU memory, which is this machine's memory here."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **_: Any) -> Any:
        lent = self._array.__dlpack__()
        ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
        ctypes.pythonapi.PyCapsule_GetPointer.argtypes = ctypes.py_object, ctypes.c_char_p
        place = ctypes.pythonapi.PyCapsule_GetPointer(lent, b"dltensor")
        ctypes.c_int.from_address(place + ctypes.sizeof(ctypes.c_void_p)).value = 2
        return lent


def on_cpu(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let models be compiled for this stand-in instead of NVIDIA's GPUs."""

    def compiled(kernels: Iterable[Kernel], target: Target, *_: Any) -> dict[str, bytes | Refusal]:
        return {one.symbol: _kernel(one, target, folder) for one in kernels}

    monkeypatch.setattr(model, "compile_kernels", compiled)


def _kernel(kernel: Kernel, target: Target, folder: Path) -> bytes | Refusal:
    try:
        with code_generation(target):
            made = gpu_source(tvm.ir.load_json(kernel.program), kernel.symbol, target)
    except ValueError as error:
        return Refusal(str(error))
    library = folder / f"{kernel.symbol}.so"
    compile_source(made.text, library)
    code = target.gpu.arch.encode() + str(library).encode() + b"\0"
    newer = code.replace(b"sm", b"compute", 1)
    return GpuKernel(made.launches, made.workspace, code, newer).to_bytes()


def compile_source(text: str, library: Path) -> None:
    """Compile CUDA C++ for this machine."""
    source = library.with_suffix(".cc")
    body = re.sub(r"^typedef .*?int\d+_t;\n", "", text, flags=re.MULTILINE)
    body = re.sub(r"__shared__ (alignas\(\d+\))", r"\1 static", body)
    counts = [
        f'extern "C" const int {name}_arguments;\nconst int {name}_arguments = {given.count("*")};'
        for name, given in _KERNEL.findall(text)
    ]
    source.write_text("\n".join(['#include "cuda.h"', body, *counts, ""]))
    _compile([str(source), f"-I{FOLDER}"], library)


def _compile(arguments: list[str], library: Path) -> None:
    command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", *arguments, "-o", str(library)]
    subprocess.run(command, check=True)


def compiler(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Replace NVIDIA's compiler by one for this stand-in, in this process."""

    def compiled(source: str, arch: str) -> tuple[bytes, bytes]:
        library = folder / f"{sha256(source)[:20]}.so"
        compile_source(source, library)
        return arch.encode() + str(library).encode() + b"\0", b""

    monkeypatch.setattr(nvrtc, "compiled", compiled)
    monkeypatch.setattr(nvrtc, "check", lambda: None)


class InThisProcess:
    """An executor that builds candidates in this process, with the compiler of `compiler`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def submit(self, _: Any, payload: dict[str, Any], __: float) -> Future[dict[str, Any]]:
        path = self._folder / "candidate"
        future: Future[dict[str, Any]] = Future()
        try:
            made = candidate.build({**payload, "path": str(path)})
            future.set_result({**made, "library": path.read_bytes()})
        except (RuntimeError, ValueError) as error:
            future.set_result({"error": "build", "message": str(error)})
        return future
