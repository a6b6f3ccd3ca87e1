"""Words that a shell completes, asked for by a real one."""

import os
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from ansor_deploy import cli

BASH = shutil.which("bash") or ""
ASK = """
eval "$(ansor-deploy completion bash)"
COMP_WORDS=(ansor-deploy {words}); COMP_CWORD={last}
_ansor_deploy_completion ansor-deploy
echo "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def environment(tmp_path):
    """Where `ansor-deploy` is this tree's."""
    script = tmp_path / "ansor-deploy"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m ansor_deploy "$@"\n')
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.mark.skipif(not BASH, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["prof"], "profile"),
        (["registry", "sho"], "show"),
        (["build", "--targ"], "--target"),
        (["build", "--target", "rp"], "rpi3"),
        (["build", "--effort", "th"], "thorough"),
    ],
)
def test_bash_completes(environment, words, found):
    asked = ASK.format(words=" ".join(words), last=len(words))
    result = subprocess.run(
        [BASH, "-c", asked], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.split()[-1] == found, result.stderr
    assert result.stderr == ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts(shell):
    assert "ansor-deploy" in CliRunner().invoke(cli.main, ["completion", shell]).stdout
