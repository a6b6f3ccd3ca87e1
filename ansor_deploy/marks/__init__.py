"""Marks of loops, by which a schedule asks lowering for what no primitive does; a file each.

A file of this folder has all that there is to a mark: its keys, the verb by which a rule puts it,
and the pass of lowering that does what it asks for. The firewall of records, what rules import and
lowering (`codegen/kernels/lowering.py`) take every mark that lies here. The first two need no TVM,
so that a mark's file takes TVM's names from `_lazy_tvm.py`.
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
    """Where in lowering a mark's pass comes, in this order."""

    BLOCKS = auto()  # the program is as it was scheduled, with its blocks
    LOOPS = auto()  # loops over flat buffers, as they were scheduled, become other statements
    STEPS = auto()  # statements are added to the steps of loops
    BEFORE = auto()  # and before all that a loop's step does
    ENDS = auto()  # loops are cut in parts
    VECTORS = auto()  # loops over lanes are vectors, others are not yet written out


@dataclass(frozen=True)
class Mark:
    """What a schedule may ask lowering for, by an annotation of a loop.

    values: a check of the value that a record may have, for each key of annotations that the pass
    reads. place: of the pass. lower: the pass; makes of a PrimFunc one in which it is done. llvm:
    options that LLVM needs for functions with this mark. verbs: what rules may import of the file.
    """

    values: Mapping[str, Check]
    place: Place
    lower: Callable[[Any], Any]
    llvm: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


@cache
def marks() -> dict[str, Mark]:
    """Every mark, by the module that has it."""
    files = sorted(Path(__file__).parent.glob("[a-z]*.py"))
    modules = (f"{__name__}.{file.stem}" for file in files)
    return {module: import_module(module).MARK for module in modules}
