"""Messages as lines of JSON, for programs that show them in their own way."""

from __future__ import annotations

import json

from .plain import QuietReport


def message_line(
    level: str,
    message: str,
    hint: str = "",
    file: str | None = None,
    line: int | None = None,
    code: int | None = None,
) -> str:
    """One message. level: "warning" or "error". code: the exit code that an error has."""
    said = {"level": level, "message": message, "hint": hint, "file": file, "line": line}
    return json.dumps({**said, "code": code})


class JsonReport(QuietReport):
    """Warnings only, each as one line."""

    def warn(self, message: str) -> None:
        """The message alone: a warning is of no file and ends nothing."""
        print(message_line("warning", message), file=self._stream, flush=True)
