"""Whether the installed TVM and tvm-ffi work together; this module imports neither.

apache-tvm 0.27 admits any tvm-ffi from 0.1.14 on, but with 0.1.15 its JSON writer dereferences a
bad pointer and kills the interpreter. So an unknown pair is tried in a child process.
"""

import subprocess
import sys

from .environment import version

PIN = "pip install 'apache-tvm==0.27.0.post1' 'apache-tvm-ffi>=0.1.14.post0,<0.1.15'"
PROBE = "import tvm; tvm.ir.save_json(tvm.tirx.IntImm('int32', 1))"
_PROBE_SECONDS = 120.0  # how long the child process may take


def pair() -> str:
    """The versions of TVM and its FFI, for messages."""
    return f"apache-tvm {version('apache-tvm')} with apache-tvm-ffi {version('apache-tvm-ffi')}"


def is_known() -> bool:
    """Whether the installed pair is one that this tool was tested with."""
    tvm, ffi = version("apache-tvm"), version("apache-tvm-ffi")
    return tvm.startswith("0.27.") and ffi.startswith("0.1.14.")


def why_it_fails() -> str:
    """Why TVM fails in a process of its own, or "" if it works."""
    command = [sys.executable, "-c", PROBE]
    try:
        child = subprocess.run(
            command, capture_output=True, check=False, text=True, timeout=_PROBE_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {_PROBE_SECONDS:.0f} s"
    if child.returncode < 0:
        return f"died of signal {-child.returncode}"
    last = (child.stderr.strip().splitlines() or ["no message"])[-1]
    return last if child.returncode else ""
