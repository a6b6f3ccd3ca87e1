"""Check the names of a build's outputs, before any work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...system.apart import check_apart
from ..manifest import output_paths
from .depfile import escaped

if TYPE_CHECKING:
    from ...request import Outputs, Request


def check_places(model: Path, outputs: Outputs, request: Request) -> None:
    """UsageError where a file would be written twice, or would replace one that is read.

    AnsorError for names that cannot be in a depfile, where one is requested.
    """
    locks = [request.lock] if request.lock else []
    written = output_paths(outputs.library, header=outputs.header)
    written += outputs.elsewhere
    written += [] if request.frozen else locks
    asked = [one for one in request.files if request.frozen or one != request.lock]
    read = [model, *asked, *([] if request.frozen else [request.registry])]
    check_apart(written, read, _HINT)
    if outputs.library.suffix != ".so":  # loaders recognise a library by it
        hint = f"end it in .so: -o {outputs.library.with_name(f'{outputs.library.name}.so')}"
        raise UsageError("this is no name of a library", hint, outputs.library)
    if outputs.depfile is not None:
        for path in (outputs.library, model, *request.files):
            escaped(path)


_HINT = "give -o/--output, --depfile, --report and --lock names of their own"
