"""The only door to TVM. Importing this module imports TVM, after proving that it is safe to.

Every other module of the engine takes its TVM names from here, and is itself imported only
when a command needs it, so that `--help`, registry queries and an unchanged build stay fast.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Any

from .errors import AnsorError

if TYPE_CHECKING:
    from .target import Target

PROBE = "import tvm; tvm.ir.save_json(tvm.tirx.IntImm('int32', 1))"


def check_pairing() -> None:
    """Refuse a TVM and tvm-ffi pairing that crashes the interpreter, before it does.

    apache-tvm 0.27 admits any tvm-ffi from 0.1.14 on, but with 0.1.15 its JSON writer
    dereferences a bad pointer. A pairing that we have not tried is probed in a child process.
    """
    tvm_version, ffi_version = metadata.version("apache-tvm"), metadata.version("apache-tvm-ffi")
    if tvm_version.startswith("0.27.") and ffi_version.startswith("0.1.14."):
        return
    child = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False)
    if child.returncode != 0:
        raise AnsorError(
            f"apache-tvm {tvm_version} and apache-tvm-ffi {ffi_version} do not work together: "
            f"the probe ended with status {child.returncode}",
            "run: pip install 'apache-tvm==0.27.0.post1' 'apache-tvm-ffi>=0.1.14.post0,<0.1.15'",
        )


@contextmanager
def kept_from_home() -> Iterator[None]:
    """Let TVM be imported where there is no home directory, or none to write to.

    It looks for one at once, and makes a folder in it for what its own tests download.
    """
    os.environ.setdefault("TEST_DATA_ROOT_PATH", tempfile.gettempdir())
    named = "XDG_CACHE_HOME" in os.environ
    os.environ.setdefault("XDG_CACHE_HOME", tempfile.gettempdir())
    try:
        yield
    finally:
        if not named:
            del os.environ["XDG_CACHE_HOME"]


check_pairing()

with kept_from_home():
    import tvm
    from tvm import relax, tirx
    from tvm.s_tir import meta_schedule
    from tvm_ffi import structural_equal, structural_hash, structural_map, structural_walk


def _without_type_checks(schedule: Any) -> None:
    """Let primitives be called directly.

    TVM holds each argument to the method's annotations in Python, before C++ does the same: a
    quarter of the time that it takes to make a program.
    """
    for name, method in list(vars(schedule).items()):
        if hasattr(method, "__wrapped__"):
            setattr(schedule, name, method.__wrapped__)


_without_type_checks(tvm.s_tir.Schedule)


def __getattr__(name: str) -> Any:
    """The ONNX front end, which imports onnx: only a build needs it."""
    if name != "onnx_frontend":
        raise AttributeError(name)
    from tvm.relax.frontend.onnx import onnx_frontend

    return onnx_frontend


def tvm_target(target: Target) -> tvm.target.Target:
    """The code generator's view of a target."""
    host: dict[str, Any] = {"kind": "llvm", "mcpu": target.cpu, "mtriple": target.triple}
    host["num-cores"] = target.cores
    if target.features:
        host["mattr"] = list(target.features)
    if target.gpu is None:
        return tvm.target.Target(host)
    device = {
        "kind": target.kind,
        "arch": target.gpu.arch,
        "max_threads_per_block": target.gpu.max_threads_per_block,
        "max_shared_memory_per_block": target.gpu.shared_bytes_per_block,
        "thread_warp_size": target.gpu.warp_size,
    }
    return tvm.target.Target(device, host=host)


VERSION: str = metadata.version("apache-tvm")

__all__ = [
    "VERSION",
    "meta_schedule",
    "relax",
    "structural_equal",
    "structural_hash",
    "structural_map",
    "structural_walk",
    "tirx",
    "tvm",
    "tvm_target",
]
