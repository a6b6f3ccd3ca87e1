"""What cannot be written to a full disk is named, and no part of it is left there."""

import subprocess
import sys

import pytest
from helpers.foreign import registry

TOOL = f"{sys.executable} -m ansor_deploy"
WRAPPER = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
WHEEL = """
from pathlib import Path
from ansor_deploy.ship.package.wheel import _written
_written(Path("."), "net-1", "py3-none-any", "", {"net.so": bytes(range(256)) * 64})
"""
COMMANDS = {
    "push": (f"{TOOL} registry push . --registry ../r.db", "device: ."),
    "rules new": (f"{TOOL} rules new mine", "mine.py"),
    "a wheel": (f"{sys.executable} -c '{WHEEL}'", "net-1-py3-none-any.whl"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_named_with_the_file(name, tmp_path):
    folder = tmp_path / "full"
    folder.mkdir()
    command, wanted = COMMANDS[name]
    mount = f"mount -t tmpfs -o size=4k none {folder}"
    if subprocess.run([*WRAPPER, mount], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount a file system in a namespace")
    registry(tmp_path / "r.db", 64)
    filling = "head -c 4096 /dev/zero > pad"
    script = f"{mount} && cd {folder} && {filling} && {command}; echo; find . -type f -size +0"
    words = [*WRAPPER, script]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    assert "no space left on device" in ran.stderr.lower()
    assert wanted in ran.stderr
    assert ran.stdout.split() == ["./pad"]
