"""A build that is interrupted while kernels are compiled ends at once and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from helpers.graphs import dense
from helpers.processes import MARK, remaining

# Each kernel is with a compiler that never comes back, in a worker as any other.
BUILD = """
import sys
from ansor_deploy.codegen.kernels import objects
objects._COMPILES = "helpers.hostile_compiler"
objects.KERNELS_PER_WORKER = 1
from ansor_deploy.cli import main
sys.argv = ["ansor-deploy", "build", "net.onnx", "--trials", "0", "-o", "out/net.so"]
main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_it_ends_while_a_kernel_is_compiled(number, code, tmp_path):
    onnx.save(dense(16, 32, 24, 8), tmp_path / "net.onnx")
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "ANSOR_DEPLOY_TEST_FAULT": "sleep",
        MARK: str(tmp_path),
    }
    words = [sys.executable, "-c", BUILD]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=tmp_path, env=env, **pipes) as build:
        while not build.stderr.readline().startswith("[compile]"):
            assert build.poll() is None
        while not _children(build.pid):
            assert build.poll() is None
        build.send_signal(number)
        _, said = build.communicate(timeout=60)
    assert build.returncode == code
    assert "interrupted" in said
    assert remaining(str(tmp_path)) == []
    assert list((tmp_path / "out").iterdir()) == []
    cache = tmp_path / "cache" / "ansor-deploy" / "objects"
    assert not any(path.name.startswith(".") for path in cache.glob("*"))


def _children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
