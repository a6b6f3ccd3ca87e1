"""How a library says that the processor lacks what its code needs (`codegen/processor.c`)."""

import re
from pathlib import Path

from ..errors import DeviceError

_LACKS = re.compile(r"(it is built for a processor with .* lacks); (.*)$")


def wrong_processor(said: str, path: Path) -> DeviceError | None:
    """The error of a library that says so, if it does."""
    found = _LACKS.search(said)
    return DeviceError(found[1], found[2], path) if found else None
