"""Check a library against its memory limits; the error names the largest parts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..codegen.memory.figures import total
from ..devices.room import NO_MEMORY
from ..errors import AnsorError, DeviceError, ModelError
from ..system.host import memory_bytes
from ..system.words import size_text

if TYPE_CHECKING:
    from ..codegen.memory.figures import Memory, MemoryUse
    from ..devices.machine import Machine
    from ..request import Limits

_NAMED = 5  # the most parts that an error lists


def check_limits(
    memory: Memory, limits: Limits, model: Path, machine: Machine | None = None
) -> None:
    """AnsorError, with the largest parts, where a model takes more memory than it may.

    Also where it takes more than this machine has, on which it is verified, or more than is free
    on the device that would run it. machine: the one with that device.
    """
    if limits.size is not None and total(memory.library) > limits.size:
        raise _exceeded("the library", "size", memory.library, limits.size, model)
    if limits.memory is not None and total(memory.run) > limits.memory:
        raise _exceeded("a run", "memory", memory.run, limits.memory, model)
    if total(memory.run) > memory_bytes():
        raise ModelError(
            f"a run takes {size_text(total(memory.run))}, and this machine has "
            f"{size_text(memory_bytes())} of memory. {_largest(memory.run)}",
            "make the model smaller, or its inputs (--input-shape)",
            model,
        )
    if machine is not None and not machine.holds(total(memory.run)):
        raise DeviceError(
            f"a run takes {size_text(total(memory.run))} of memory, and {machine.name} has less "
            f"free. {_largest(memory.run)}",
            NO_MEMORY,
            model,
        )


def _exceeded(
    what: str, option: str, parts: Iterable[MemoryUse], most: int, model: Path
) -> AnsorError:
    return AnsorError(
        f"{what} takes {size_text(total(parts))}, and --max-{option} allows {size_text(most)}; no "
        f"library was written. {_largest(parts)}",
        f"allow more with --max-{option}, or make the model smaller",
        model,
    )


def _largest(parts: Iterable[MemoryUse]) -> str:
    largest = sorted(parts, key=lambda part: (-part.size, part.what))
    listed = [f"  {size_text(part.size)}  {part.what}" for part in largest[:_NAMED]]
    return "\n".join(["The largest parts:", *listed])
