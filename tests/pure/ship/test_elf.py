"""What a library needs, read from its file: as binutils read it, and damaged ones named."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansor_deploy.errors import AnsorError
from ansor_deploy.ship.package.elf import needed_glibc

REAL = [
    Path(sys.executable).resolve(),
    *sorted(Path("/lib/x86_64-linux-gnu").glob("lib[cmz].so.*")),
]


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_it_reads_what_readelf_reads(path):
    if not (readelf := shutil.which("readelf")):
        pytest.skip("there is no readelf here")
    shown = subprocess.run([readelf, "-V", path], capture_output=True, text=True, check=True).stdout
    _, _, needs = shown.partition("Version needs section")
    versions = [tuple(map(int, pair)) for pair in re.findall(r"GLIBC_(\d+)\.(\d+)", needs)]
    assert needed_glibc(path) == max(versions, default=(0, 0))


@pytest.mark.parametrize("content", [b"", b"no library", b"\x7fELF\x01\x01" + b"\0" * 60])
def test_what_is_no_library_is_refused(tmp_path, content):
    (tmp_path / "m.so").write_bytes(content)
    with pytest.raises(AnsorError, match="no 64-bit ELF"):
        needed_glibc(tmp_path / "m.so")


def test_a_damaged_one_is_refused_or_read(tmp_path):
    """No flipped byte of its headers ends in anything else."""
    whole, path = bytearray(REAL[0].read_bytes()), tmp_path / "m.so"
    start = int.from_bytes(whole[40:48], "little")
    refused = 0
    for place in (*range(40, 64), *range(start, min(start + 2000, len(whole)), 7)):
        whole[place] ^= 0xFF
        path.write_bytes(whole)
        whole[place] ^= 0xFF
        try:
            needed_glibc(path)
        except AnsorError:
            refused += 1
    assert refused
