"""Write ansor_deploy/codegen/thread_pool.ll from thread_pool.c, by Clang of the package ziglang.

Needed where the C file changes: pip install ziglang, then python docs/make_thread_pool.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ansor_deploy.codegen.thread_pool import SOURCE, TEXT, header

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
    """Compile, strip and write."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "pool.ll")
        command = [sys.executable, "-m", "ziglang", "cc", *_FLAGS, "-o", str(made), str(SOURCE)]
        subprocess.run(command, check=True)
        code = _NOTES.sub("", _LINES.sub("", made.read_text()))
    TEXT.write_text(f"{header()}\n{re.sub(chr(10) + '{3,}', chr(10) * 2, code).strip()}\n")


if __name__ == "__main__":
    main()
