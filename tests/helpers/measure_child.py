"""Functions that tests call in a worker process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def echo(payload):
    return payload


def complain(payload):
    raise ValueError("first line\nsecond line")


def crash(payload):
    print("last words", flush=True)
    os.kill(os.getpid(), payload["signal"])


def crash_once(payload):
    """Kill this process as a system short of memory would; the next one finds the mark."""
    mark = Path(payload["mark"])
    if payload["always"] or not mark.exists():
        mark.touch()
        os.kill(os.getpid(), payload["signal"])
    return "answered"


def raise_error(payload):
    raise {"OSError": OSError(*payload["words"]), "RuntimeError": RuntimeError(*payload["words"])}[
        payload["kind"]
    ]


def take_memory(payload):
    from ansor_deploy.system.limits import limit_memory

    if payload["limited"]:
        limit_memory(0)
    return len(bytearray(payload["bytes"]))


def leave(payload):
    os._exit(payload["status"])


def hang_with_a_child(payload):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(payload["path"]).write_text(json.dumps([os.getpid(), child.pid]), encoding="utf-8")
    time.sleep(600)


def interrupt_itself(payload):
    os.kill(os.getpid(), signal.SIGINT)
    return "still here"
