"""The C compiler that makes the files for machines without Python."""

import pytest

from ansor_deploy.devices.c_runtime import c_runtime
from ansor_deploy.errors import AnsorError
from ansor_deploy.system.host import architecture

KILLED = """#!/bin/sh
echo > "$TMPDIR/left.s"
kill -9 $$
"""


def test_what_a_killed_compiler_leaves_goes_with_the_folder(tmp_path, monkeypatch):
    """A signal to the tool alone, as systemd sends it, kills the compiler before it can tidy up."""
    compiler, folder = tmp_path / "bin" / "cc", tmp_path / "made"
    compiler.parent.mkdir()
    compiler.write_text(KILLED)
    compiler.chmod(0o755)
    folder.mkdir()
    monkeypatch.setenv("PATH", str(compiler.parent), prepend=":")
    with pytest.raises(AnsorError, match="cc cannot compile the C API"):
        c_runtime(architecture(), folder, tmp_path, program=False)
    assert (folder / "left.s").exists()
