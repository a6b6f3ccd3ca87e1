"""ansor-deploy, observed: each call is noted, and one may be killed while it writes its outputs.

    python observed.py FOLDER WORD...

FOLDER/calls gets two JSON lines a call: {"call", "words"} when it begins, and when it ends {"call",
"code", "heavy", "moves"}: its exit code, which heavy packages it has loaded, and how many files it
has moved into place, beside its -o. Where FOLDER/kill holds "N SESSION", a build dies by SIGKILL
just before the N-th of these, and with it all of its session, so the build system, too; but of that
session nothing else.
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
    """Counts the outputs that a build moves into place, and ends it before one of them."""

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
    """End every process of this session, this one last; of session `spared` only this one."""
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
    """Append to the calls, in one write."""
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
    sys.path.pop(0)  # this folder: its modules are the tests'
    main()
