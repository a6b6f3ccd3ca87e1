"""Write the .ll files of ansor_deploy/codegen from the .c files, by Clang of the package ziglang.

Needed where a C file changes: pip install ziglang, then python docs/make_llvm.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ansor_deploy.codegen import gpu_launcher, thread_pool
from ansor_deploy.codegen.llvm_text import header

# Nothing that an architecture has of its own: vectors, unwinding tables, frame pointers.
_FLAGS = (
    *("-target", "x86_64-linux-gnu", "-O2", "-fPIC", "-g0", "-S", "-emit-llvm", "-Wall", "-Werror"),
    *("-Wno-unused-command-line-argument", "-fno-stack-protector", "-fno-sanitize=all"),
    *("-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-fno-strict-aliasing"),
    *("-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"),
)
# What names Clang, its target or its file, and notes for optimisations that are done.
_LINES = re.compile(
    r"^(; ModuleID|; Function Attrs|source_filename|target |attributes |!).*\n", re.MULTILINE
)
_NOTES = re.compile(r", !tbaa !\d+|, !llvm\.loop !\d+| #\d+| local_unnamed_addr| unnamed_addr")


def main() -> None:
    """Write those whose source has changed."""
    for one in (thread_pool, gpu_launcher):
        if not one.TEXT.exists() or one.TEXT.read_text().partition("\n")[0] != header(one.SOURCE):
            one.TEXT.write_text(_compiled(one.SOURCE))


def _compiled(source: Path) -> str:
    """A C file in LLVM's language."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made.ll")
        command = [sys.executable, "-m", "ziglang", "cc", *_FLAGS, "-o", str(made), str(source)]
        subprocess.run(command, check=True)
        code = _NOTES.sub("", _LINES.sub("", made.read_text()))
    return f"{header(source)}\n{re.sub(chr(10) + '{3,}', chr(10) * 2, code).strip()}\n"


if __name__ == "__main__":
    main()
