"""ansor-deploy under observation: calls are noted, and one may be killed while it writes outputs.

    python observed.py FOLDER WORD...

FOLDER/calls gets two JSON lines for each call: {"call", "words"} at its beginning, and {"call",
"code", "heavy", "moves"} at its end: the exit code, the heavy packages that it has loaded, and the
number of files that it has moved into place, beside its -o. If FOLDER/kill holds "N SESSION", a
build dies by SIGKILL before its N-th move, with its whole session, including the build system; in
the session SESSION it dies alone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
CALL = f"{os.getpid()}.{time.monotonic_ns()}"  # in a sandbox all have the same process id
HEAVY = ("numpy", "onnx", "onnxruntime", "tvm", "tvm_ffi")


class Moves:
    """Counts the outputs that a build moves into place, and kills it before one of them."""

    def __init__(self, words: list[str], fatal: str) -> None:
        is_build = words[:1] == ["build"] and "-o" in words
        self.folder = Path(words[words.index("-o") + 1]).absolute().parent if is_build else None
        self.count = 0
        self.at, self.spared = map(int, fatal.split()) if fatal else (0, 0)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "os.rename" or Path(os.fspath(arguments[1])).absolute().parent != self.folder:
            return
        self.count += 1
        if self.count == self.at:
            kill_session(self.spared)


def kill_session(spared: int) -> None:
    """Kill every process of this session, this one last; in session `spared` only this one."""
    session = os.getsid(0)
    for pid in [int(path.name) for path in Path("/proc").glob("[0-9]*")]:
        if session != spared and pid != os.getpid() and _session(pid) == session:
            os.kill(pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return -1


def note(**what: Any) -> None:
    """Append a line to the calls, in one write."""
    with (FOLDER / "calls").open("a", encoding="utf-8") as calls:
        calls.write(json.dumps({"call": CALL, **what}) + "\n")


def main() -> None:
    words = sys.argv[2:]
    note(words=words)
    kill = FOLDER / "kill"
    moves = Moves(words, kill.read_text() if kill.exists() else "")
    sys.addaudithook(moves)
    sys.argv = ["ansor-deploy", *words]
    code: Any = 0
    try:
        from ansor_deploy.cli import main as ansor_deploy

        ansor_deploy()
    except SystemExit as end:
        code = end.code or 0
        raise
    finally:
        heavy = [name for name in HEAVY if name in sys.modules]
        note(code=code, heavy=heavy, moves=moves.count)


if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its modules belong to the tests
    main()
