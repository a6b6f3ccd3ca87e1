"""The weights of a library: one read-only block behind the code, mapped and never copied.

TVM writes constants into a library as data that every process copies into its own memory when it
loads the library. In the block they are pages of the file: all processes that run the library share
them, and the system may drop them and read them again. The linker never sees the block. It is
appended to the linked file, as the last thing in it, where no ELF loader looks.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..._tvm import elements, relax, structural_map, tvm
from .arena import ALIGNMENT
from .storage import Slot


@dataclass(frozen=True)
class Weights:
    """The distinct constants of a library, in the order of their first use.

    block: their bytes; each begins at a multiple of `ALIGNMENT`.
    """

    block: bytearray = field(default_factory=bytearray, repr=False)
    _offsets: dict[bytes, int] = field(default_factory=dict, repr=False)

    def copy(self) -> Weights:
        """A copy with the same constants at the same places, to which others can be added."""
        return Weights(bytearray(self.block), dict(self._offsets))

    def place(self, content: bytes | memoryview) -> int:
        """The offset of a constant in the block; equal constants share one."""
        digest = hashlib.sha256(content).digest()
        if digest not in self._offsets:
            self.block.extend(bytes(-len(self.block) % ALIGNMENT))
            self._offsets[digest] = len(self.block)
            self.block.extend(content)
        return self._offsets[digest]

    def append_to(self, library: Path) -> None:
        """Write the block behind the end of a file."""
        with library.open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(end + -end % ALIGNMENT)
            file.write(self.block)


def lifted(body: relax.Expr, weights: Weights) -> tuple[relax.Expr, dict[Slot, relax.Var]]:
    """A body with variables in place of its constants, and these variables by their places."""
    found: dict[Slot, relax.Var] = {}

    def variable(constant: Any) -> Any:
        if not isinstance(constant.ty, relax.TensorType):
            return constant
        values = elements(constant)
        content = values.reshape(-1).view(np.uint8).data
        place = Slot(weights.place(content), values.shape, str(constant.ty.dtype))
        return found.setdefault(place, relax.Var(f"w{len(found)}", constant.ty))

    return structural_map(body, (tvm.ir.GenericConst, variable)), found
