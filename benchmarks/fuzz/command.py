"""One command of ansor-deploy as a fuzzer sees it: its exit code, messages, time and memory.

The command runs in this process, a worker that has loaded TVM; the caller notices if the process
dies, or takes too long.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from ansor_deploy.cli import main

SAID = 1000  # characters kept from the end of stderr
_LOG = re.compile(r"report it with the log (\S+)")


def attempt(payload: dict[str, Any]) -> dict[str, Any]:
    """Run {"words", "folder"}; returns {"code", "said", "seconds", "megabytes": peak memory}."""
    os.environ["XDG_STATE_HOME"] = payload["folder"]
    forget_peak()
    began = time.perf_counter()
    os.chdir(payload["folder"])
    result = CliRunner().invoke(main, payload["words"])
    seconds = time.perf_counter() - began
    said = result.stderr + _of_log(result.stderr)
    return {
        "code": result.exit_code,
        "said": said[-SAID:],
        "traceback": "Traceback (most recent" in result.stderr,
        "seconds": seconds,
        "megabytes": peak(),
    }


def forget_peak() -> None:
    """Let `peak` measure from now on."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak() -> float:
    """The peak memory of this process, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (found,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(found) / 1024


def _of_log(said: str) -> str:
    """The end of the log of an unexpected exception, which the message names; else ""."""
    if not (found := _LOG.search(said)):
        return ""
    with suppress(OSError):
        return "\n" + "\n".join(Path(found[1]).read_text(encoding="utf-8").splitlines()[-8:])
    return ""
