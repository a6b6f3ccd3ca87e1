"""The registry in Datasette: the file that says what its tables and columns mean."""

from __future__ import annotations

from pathlib import Path

from ..errors import UsageError
from ..project import shipped

_NAME = "registry"  # of the database in the shipped file: Datasette goes by the file's name


def metadata_for(registry: Path, output: Path | None) -> Path:
    """The shipped metadata; or, written to `output`, what a registry of another name needs.

    UsageError if another file is needed and none is named.
    """
    source = shipped("registry") / "datasette.yml"
    if output is None:
        if registry.stem != _NAME:
            raise UsageError(
                f"the shipped metadata is for a file called {_NAME}.db, not {registry.name}",
                f"Write your own: --output {registry.stem}.yml",
            )
        return source
    text = source.read_text(encoding="utf-8")
    line = f"\n  {_NAME}:\n"
    output.write_text(text.replace(line, f'\n  "{registry.stem}":\n'), encoding="utf-8")
    return output
