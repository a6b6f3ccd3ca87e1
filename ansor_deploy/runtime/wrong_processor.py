"""The message by which a library reports missing processor features (`codegen/processor.c`)."""

import re
from pathlib import Path

from ..errors import DeviceError

_LACKS = re.compile(r"(it is built for a processor with .* lacks); (.*)$")


def wrong_processor(said: str, path: Path) -> DeviceError | None:
    """The error for a library's message about missing features; None for other messages."""
    found = _LACKS.search(said)
    return DeviceError(found[1], found[2], path) if found else None
