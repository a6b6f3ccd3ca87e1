"""What cannot be written is named, on a full disk or a read-only one, and no part of it is left."""

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


DRAFT = """
from pathlib import Path
from ansor_deploy.system.atomic_file import write_whole
write_whole(Path("records.lock"), b"")
"""
PACKAGE = """
from pathlib import Path
from ansor_deploy.ship.outputs.commit import check_folder
check_folder(Path("out"))
"""
UNWRITABLE = {
    "backup": (f"{TOOL} registry backup b.db --registry ../r.db", "the registry b.db "),
    "a lock": (f"{sys.executable} -c '{DRAFT}'", "'records.lock'"),
    "a package": (f"{sys.executable} -c '{PACKAGE}'", "mount it for writing"),
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


@pytest.mark.parametrize("name", UNWRITABLE)
def test_a_read_only_file_system_is_named_with_the_file_and_no_draft(name, tmp_path):
    folder = tmp_path / "sealed"
    folder.mkdir()
    command, wanted = UNWRITABLE[name]
    mount = f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}"
    if subprocess.run([*WRAPPER, mount], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount a file system in a namespace")
    registry(tmp_path / "r.db", 64)
    words = [*WRAPPER, f"{mount} && cd {folder} && {command}"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode
    assert wanted in ran.stderr
