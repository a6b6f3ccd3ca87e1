"""Marks of loops: with them a schedule asks lowering for what no primitive does. Each has a file.

A file of this folder defines all of a mark: its annotation keys, the verb with which a rule sets
it, and the pass of lowering that carries it out. The firewall of records, the names that rules may
import and lowering (`codegen/kernels/lowering.py`) take up every mark in this folder. The first two
must not load TVM, so a mark's file takes TVM's names from `_lazy_tvm.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ..system.checks import Check


class Place(Enum):
    """The places of marks' passes in lowering, in order."""

    BLOCKS = auto()  # the program is as it was scheduled, with its blocks
    LOOPS = auto()  # loops over flat buffers, as they were scheduled, become other statements
    STEPS = auto()  # statements are added to the steps of loops
    BEFORE = auto()  # statements are added before everything else in a loop's step
    ENDS = auto()  # loops are cut in parts
    VECTORS = auto()  # loops over lanes are vectors already, and other loops are not yet unrolled


@dataclass(frozen=True)
class Mark:
    """A request to lowering, made by an annotation of a loop.

    values: for each annotation key that the pass reads, a check of the values that a record may
    have. place: the place of the pass. lower: the pass, from PrimFunc to PrimFunc. llvm: options
    that LLVM needs for functions with this mark. verbs: names in the file that rules may import.
    """

    values: Mapping[str, Check]
    place: Place
    lower: Callable[[Any], Any]
    llvm: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


@cache
def marks() -> dict[str, Mark]:
    """Every mark, by the name of its module."""
    files = sorted(Path(__file__).parent.glob("[a-z]*.py"))
    modules = (f"{__name__}.{file.stem}" for file in files)
    return {module: import_module(module).MARK for module in modules}
