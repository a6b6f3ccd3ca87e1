"""A registry that others may write: what is code in it is held to what a bundle is held to.

Of a file that is this user's alone, rows are what this tool wrote, and may have instructions of
the user's own rules. Into any other somebody may have put a row, and its trace or program would run
here. What is no code is believed as this registry's own, such as a time.
"""

import shlex
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import RegistryError
from ..system.untrusted import Refused
from .forms import check, check_program
from .schema import MEASUREMENTS, RECORDS, SEARCHES, WORKLOADS, Table


def check_row(path: Path, table: Table, row: Mapping[str, Any], noun: Any) -> None:
    """RegistryError, with the way out, where a row is none that a bundle may bring."""
    try:
        if table is WORKLOADS:
            check_program(noun.text)
        if table in (RECORDS, MEASUREMENTS):
            _check_trace(noun.trace)
        if table in (WORKLOADS, RECORDS, SEARCHES):
            check(table.sent(row), table.forms)
    except Refused as error:
        where, name = shlex.quote(str(path)), str(row[table.columns[0].name])[:12]
        raise RegistryError(
            f"others may write the registry {path}, and what it has in {table.name} as {name} is "
            f"refused: {error}",
            "Find out who wrote it, and use another registry (--registry PATH). If all of it is "
            f"yours, let nobody else write: chmod go-w {where}, and its folder.",
        ) from error


# For a GPU, whatever it is for: its traces may have all that a CPU's may.
@lru_cache(maxsize=1024)
def _check_trace(trace: str) -> None:
    from .instructions import check_trace  # which only such a file needs

    check_trace(trace, "cuda")
