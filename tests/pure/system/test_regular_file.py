"""A file that never ends, or that nobody writes to, is an error at once."""

import os
from pathlib import Path

import pytest

from ansor_deploy.system.regular_file import open_regular, read_regular


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def refused(path, most=100):
    with pytest.raises(OSError) as caught:  # noqa: PT011 - what it says is tested
        read_regular(path, most)
    return caught.value.strerror


def test_only_regular_files_are_read(pipe, tmp_path):
    for path in (pipe, tmp_path, Path("/dev/zero"), Path("/dev/null")):
        assert refused(path) == "it is no regular file"
        with pytest.raises(OSError, match="no regular file"):
            open_regular(path)


def test_and_no_more_than_was_asked_for(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 4096)
    assert read_regular(file, 4096) == b"x" * 4096
    assert refused(file, 4095) == "it has more than 3 KiB"
    os.truncate(file, 1 << 40)  # and takes no time or space
    assert "more than" in refused(file, 1 << 20)
