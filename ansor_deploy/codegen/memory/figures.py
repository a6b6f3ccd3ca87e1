"""What a library and its runs take of memory, part by part."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class MemoryUse:
    """Something that takes memory. size: in bytes."""

    what: str
    size: int


@dataclass(frozen=True)
class Memory:
    """What a model takes, as planned: the same on every machine.

    weights: constants. code: the rest of the library, once that is linked. inputs: the caller's.
    storage: outputs, and tensors between kernels, which share an arena: those that live at once
    where that takes the most, and what lies between them. buffers: those of the kernel with the
    largest, of all its threads; one runs at a time.
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
        """In bytes, as a manifest has them: `workspace` is what is written in a run."""
        return {
            "library": total(self.library),
            "weights": total(self.weights),
            "workspace": total((*self.storage, *self.buffers)),
            "peak": total(self.run),
        }


def total(parts: Iterable[MemoryUse]) -> int:
    """Bytes of all parts."""
    return sum(part.size for part in parts)
