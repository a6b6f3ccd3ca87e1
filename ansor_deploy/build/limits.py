"""Does a library keep to what it may take? If not, the error names what takes the most."""

from collections.abc import Iterable
from pathlib import Path

from ..codegen.memory import Memory, Part, size_text, total
from ..errors import AnsorError
from ..request import Limits

_NAMED = 5  # parts that an error lists


def check_limits(memory: Memory, limits: Limits, model: Path) -> None:
    """AnsorError where a model takes more than it may, with the largest parts."""
    if limits.size is not None and total(memory.library) > limits.size:
        raise _exceeded("the library", "size", memory.library, limits.size, model)
    if limits.memory is not None and total(memory.run) > limits.memory:
        raise _exceeded("a run", "memory", memory.run, limits.memory, model)


def _exceeded(what: str, option: str, parts: Iterable[Part], most: int, model: Path) -> AnsorError:
    largest = sorted(parts, key=lambda part: (-part.size, part.what))
    listed = [f"  {size_text(part.size)}  {part.what}" for part in largest[:_NAMED]]
    taken = size_text(total(largest))
    return AnsorError(
        f"{what} takes {taken}, and --max-{option} allows {size_text(most)}; no library was "
        "written. The largest parts:\n" + "\n".join(listed),
        f"allow more with --max-{option}, or make the model smaller",
        model,
    )
