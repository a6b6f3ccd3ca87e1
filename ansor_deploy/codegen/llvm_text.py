"""What a library brings along that is written in C, as an object file for any target.

No C compiler is needed for it, nor one for another architecture: beside each `.c` lies LLVM's own
language, which TVM's LLVM compiles as it does kernels. `docs/make_llvm.py` wrote it.
"""

import json
import tempfile
from functools import lru_cache
from pathlib import Path

from .._tvm import llvm_target, tvm
from ..system.digest import sha256
from ..target import Target


def header(source: Path) -> str:
    """The first line of a text: what it was made from."""
    return f"; Made by docs/make_llvm.py of {source.name}, {sha256(source.read_text())}"


def object_of_text(text: str, target: Target) -> bytes:
    """The object file of LLVM's text, for a target's processor."""
    return _compiled(text, json.dumps(llvm_target(target)).replace('"', r"\22"))


@lru_cache(maxsize=4)
def _compiled(text: str, described: str) -> bytes:
    """described: the target as LLVM's text has it, JSON in a string."""
    flag = f'!llvm.module.flags = !{{!0}}\n!0 = !{{i32 2, !"tvm_target", !"{described}"}}\n'
    with tempfile.TemporaryDirectory() as folder:
        code, made = Path(folder, "code.ll"), Path(folder, "code.o")
        code.write_text(text + flag)
        tvm.runtime.load_module(str(code)).write_to_file(str(made), "obj")
        return made.read_bytes()
