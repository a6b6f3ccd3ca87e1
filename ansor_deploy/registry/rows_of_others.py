"""Check code in a registry that others may write, as strictly as code in a bundle.

In a file that only this user may write, rows are what this tool wrote, and may have instructions of
the user's own rules. In any other file somebody else may have put a row, and its trace or program
would run here. Data that is not code, such as a time, is trusted as the registry's own.
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
    """RegistryError, with the remedy, where no bundle could bring such a row."""
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


# Checked as a trace for a GPU, for any target: these may have everything that a CPU's may have.
@lru_cache(maxsize=1024)
def _check_trace(trace: str) -> None:
    from .instructions import check_trace  # imported here, since only shared files need it

    check_trace(trace, "cuda")
