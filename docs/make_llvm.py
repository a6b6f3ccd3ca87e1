"""Write the .ll files of ansor_deploy/codegen from the .c files, by Clang of the package ziglang.

Needed where a C file changes: pip install ziglang, then python docs/make_llvm.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ansor_deploy.codegen import processor, thread_pool
from ansor_deploy.codegen.gpu import launcher
from ansor_deploy.codegen.llvm_text import header

# Nothing that an architecture has of its own: vectors, unwinding tables, frame pointers.
_FLAGS = (
    *("-O2", "-fPIC", "-g0", "-S", "-emit-llvm", "-Wall", "-Werror"),
    *("-Wno-unused-command-line-argument", "-fno-stack-protector", "-fno-sanitize=all"),
    *("-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-fno-strict-aliasing"),
    *("-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"),
)
# What names Clang, its target or its file, and notes for optimisations that are done.
_LINES = re.compile(
    r"^(; ModuleID|; Function Attrs|source_filename|target |attributes |!).*\n", re.MULTILINE
)
_NOTES = re.compile(
    r", !(?:tbaa|srcloc|llvm\.loop) !\d+| #\d+| local_unnamed_addr| unnamed_addr",
)


# Text, source and architecture; of the first two, that is any with pointers of 64 bits.
_TEXTS = (
    (thread_pool.TEXT, thread_pool.SOURCE, "x86_64"),
    (launcher.TEXT, launcher.SOURCE, "x86_64"),
    *((text, processor.SOURCE, arch) for arch, text in processor.TEXTS.items()),
)


def main() -> None:
    """Write those whose source has changed."""
    for text, source, arch in _TEXTS:
        if not text.exists() or text.read_text().partition("\n")[0] != header(source):
            text.write_text(_compiled(source, arch))


def _compiled(source: Path, arch: str) -> str:
    """A C file in LLVM's language."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made.ll")
        clang = [sys.executable, "-m", "ziglang", "cc", "-target", f"{arch}-linux-gnu"]
        subprocess.run([*clang, *_FLAGS, "-o", str(made), str(source)], check=True)
        code = _NOTES.sub("", _LINES.sub("", made.read_text()))
    return f"{header(source)}\n{re.sub(chr(10) + '{3,}', chr(10) * 2, code).strip()}\n"


if __name__ == "__main__":
    main()
