"""The log of an unexpected exception: enough to find the bug, and no environment variables."""

import os
import platform
import shlex
import sys
import tempfile
import time
import traceback
from pathlib import Path

from .. import __version__
from ..errors import UsageError
from ..system.environment import user_folder, version
from ..system.printable import printable, without_passwords

DISTRIBUTIONS = ("apache-tvm", "apache-tvm-ffi", "numpy", "onnx", "onnxruntime", "click", "rich")

_MOST = 1 << 20  # characters of a log; a message may hold a name of any length


def write_log(error: BaseException, words: list[str]) -> Path:
    """Write a log into the state directory or, failing that, the temporary one; return its path."""
    text = log_text(error, words)
    name = f"crash-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
    for folder in (lambda: user_folder("STATE", "logs"), tempfile.gettempdir):
        try:
            path = Path(folder()) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except (OSError, UsageError):  # read-only, full, or no home: try the next folder
            continue
        return path
    sys.stderr.write(text)
    return Path("above")


def log_text(error: BaseException, words: list[str]) -> str:
    """The log's text: versions, command line and traceback, without passwords in URLs."""
    lines = [
        f"ansor-deploy {__version__}",
        f"python {platform.python_version()} on {platform.platform()}",
        *(f"{name} {version(name) or 'not installed'}" for name in DISTRIBUTIONS),
        f"command: ansor-deploy {shlex.join(words)}",
        "",
        "".join(traceback.format_exception(error)),
    ]
    return printable(without_passwords("\n".join(lines))[:_MOST], keep="\n")
