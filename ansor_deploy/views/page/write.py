"""Write a report in one of its formats."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import to_builtins

from ...ship.outputs.commit import writing_to
from ...system.atomic_file import write_whole
from .content import Facts, facts
from .markdown import markdown
from .page import page

FORMATS = {
    "html": page,
    "md": markdown,
    "json": lambda found: json.dumps(to_builtins(found.answer, enc_hook=str), indent=2),
}


def write_report(
    artifact: Path, registry: Path, seconds: float, output: Path | None, form: str
) -> tuple[Path, Facts]:
    """Write a report on a library; return its path, and its content.

    seconds: how long the library runs to be profiled. output: None for a file beside the library.
    form: one of `FORMATS`.
    """
    found = facts(artifact, registry, seconds)
    path = output or artifact.with_suffix(f".report.{form}")
    with writing_to(path.parent):
        write_whole(path, FORMATS[form](found).encode())
    return path, found
