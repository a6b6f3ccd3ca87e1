"""How much memory a library and its runs take, part by part."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class MemoryUse:
    """Something that takes memory. size: in bytes."""

    what: str
    size: int


@dataclass(frozen=True)
class Memory:
    """The memory that a model takes as planned, the same on every machine.

    weights: constants. code: the rest of the library, known once it is linked. inputs: memory of
    the caller's. storage: outputs, and the tensors between kernels, which share an arena: those
    that are alive at its peak, and the gaps between them. buffers: those of the kernel with the
    largest buffers, for all its threads; one kernel runs at a time.
    """

    weights: tuple[MemoryUse, ...]
    inputs: tuple[MemoryUse, ...]
    storage: tuple[MemoryUse, ...]
    buffers: tuple[MemoryUse, ...] = ()
    code: tuple[MemoryUse, ...] = ()

    @property
    def library(self) -> tuple[MemoryUse, ...]:
        """The parts of the library's file."""
        return (*self.weights, *self.code)

    @property
    def run(self) -> tuple[MemoryUse, ...]:
        """All parts: a process that runs the library may have its whole file in memory."""
        return (*self.library, *self.inputs, *self.storage, *self.buffers)

    def figures(self) -> dict[str, int]:
        """Bytes, as a manifest has them: `workspace` is the memory that a run writes to."""
        return {
            "library": total(self.library),
            "weights": total(self.weights),
            "workspace": total((*self.storage, *self.buffers)),
            "peak": total(self.run),
        }


def total(parts: Iterable[MemoryUse]) -> int:
    """Bytes of all parts."""
    return sum(part.size for part in parts)
