"""The threads of a library (`thread_pool.c`) as an object file, for any target.

No C compiler is needed for it, nor one for another architecture: thread_pool.ll is LLVM's own
language, which TVM's LLVM compiles as it does kernels. `docs/make_thread_pool.py` wrote it.
"""

import json
import tempfile
from functools import lru_cache
from pathlib import Path

from .._tvm import llvm_target, tvm
from ..system.digest import sha256
from ..target import Target

SOURCE = Path(__file__).with_name("thread_pool.c")
TEXT = SOURCE.with_suffix(".ll")
# The number of threads that a library's loops take, until who loads it says another.
_THREADS = "@own_threads = internal global i32 "


def header() -> str:
    """The first line of the text: what it was made from."""
    return f"; Made by docs/make_thread_pool.py of thread_pool.c, {sha256(SOURCE.read_text())}"


def thread_pool(target: Target) -> bytes:
    """The object file, for a library's threads to be as many as the target has cores."""
    text = TEXT.read_text().replace(f"{_THREADS}1,", f"{_THREADS}{target.cores},")
    return _compiled(text, json.dumps(llvm_target(target)).replace('"', r"\22"))


@lru_cache(maxsize=4)
def _compiled(text: str, described: str) -> bytes:
    """described: the target as LLVM's text has it, JSON in a string."""
    flag = f'!llvm.module.flags = !{{!0}}\n!0 = !{{i32 2, !"tvm_target", !"{described}"}}\n'
    with tempfile.TemporaryDirectory() as folder:
        code, made = Path(folder, "pool.ll"), Path(folder, "pool.o")
        code.write_text(text + flag)
        tvm.runtime.load_module(str(code)).write_to_file(str(made), "obj")
        return made.read_bytes()
