"""The check of the processor before a library's code runs (`processor.c`), as an object file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .._tvm import tvm, tvm_target
from ..system.host import architecture
from ..target import Target
from .kept_object import kept_object

SOURCE = Path(__file__).with_name("processor.c")
TEXTS = {arch: SOURCE.with_suffix(f".{arch}.ll") for arch in ("aarch64", "x86_64")}
_LEAST = {"aarch64": "generic", "x86_64": "x86-64"}  # LLVM's CPUs whose code all processors run
_CODES = "@ansor_deploy_codes = external hidden "


def least(target: Target) -> Target:
    """The target with the least capable processor of its architecture: its code runs on all."""
    return replace(target, cpu=_LEAST[architecture(target.triple)], features=())


def processor_check(targets: Sequence[Target]) -> bytes:
    """The object file, for a library with code for these targets, the most demanding first."""
    codes = ";".join(f"{target.cores} {' '.join(features(target))}" for target in targets)
    text = TEXTS[architecture(targets[0].triple)].read_text()
    before, _, after = text.partition(_CODES)
    constant = f'@ansor_deploy_codes = hidden constant [{len(codes) + 1} x i8] c"{codes}\\00"'
    text = f"{before}{constant}{after[after.index(chr(10)) :]}"
    return kept_object("processor", text, least(targets[0]))


def features(target: Target) -> list[str]:
    """LLVM's names of a target processor's features; not all of them are instructions."""
    host = replace(target, kind="llvm", gpu=None)
    of_cpu = tvm.get_global_func("target.llvm_get_cpu_features")
    return sorted(str(name) for name in of_cpu(tvm_target(host)))
