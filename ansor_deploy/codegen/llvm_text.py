"""Object files, for any target, of the parts of a library that are written in C.

No C compiler is needed, nor a cross compiler: beside each `.c` file lies its LLVM IR, written by
`docs/make_llvm.py`, which TVM's LLVM compiles as it compiles kernels.
"""

import json
import tempfile
from pathlib import Path

from .._tvm import llvm_target, tvm
from ..system.digest import sha256
from ..target import Target


def header(source: Path) -> str:
    """The first line of a file of LLVM IR: the source that it was made from."""
    return f"; Made by docs/make_llvm.py of {source.name}, {sha256(source.read_text())}"


def object_of_text(text: str, target: Target) -> bytes:
    """The object file of LLVM IR, for a target's processor."""
    described = json.dumps(llvm_target(target)).replace('"', r"\22")  # as a string of LLVM IR
    flag = f'!llvm.module.flags = !{{!0}}\n!0 = !{{i32 2, !"tvm_target", !"{described}"}}\n'
    with tempfile.TemporaryDirectory() as folder:
        code, made = Path(folder, "code.ll"), Path(folder, "code.o")
        code.write_text(text + flag)
        tvm.runtime.load_module(str(code)).write_to_file(str(made), "obj")
        return made.read_bytes()
