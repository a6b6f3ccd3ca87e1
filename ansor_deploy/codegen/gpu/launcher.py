"""An object file of a GPU's program and of the launcher that runs it (`launcher.c`)."""

import tempfile
from pathlib import Path

from ...target import Target
from ..llvm_text import object_of_text

SOURCE = Path(__file__).with_name("launcher.c")
TEXT = SOURCE.with_suffix(".ll")
_SYMBOL = "ansor_deploy_gpu_program"


def gpu_launcher(program: bytes, target: Target) -> bytes:
    """The object file. program: as `program.packed` gives it."""
    with tempfile.NamedTemporaryFile(prefix="ansor-deploy-") as file:
        file.write(program)
        file.flush()
        return object_of_text(TEXT.read_text() + _included(file.name), target)


def _included(path: str) -> str:
    """Assembler statements that include the bytes of a file as a constant."""
    lines = [
        ".section .rodata.gpu_program, \\22a\\22",
        ".p2align 6",
        f".hidden {_SYMBOL}",
        f".globl {_SYMBOL}",
        f"{_SYMBOL}: .incbin \\22{path}\\22",
        ".text",
    ]
    return "\n" + "".join(f'module asm "{line}"\n' for line in lines)
