"""Files that appear whole: where, and what a failure leaves."""

import errno
from contextlib import suppress

import pytest

from ansor_deploy.system.atomic_file import write_whole, writing_whole


def test_its_folder_is_made(tmp_path):
    write_whole(tmp_path / "new" / "folder" / "file", b"text")
    assert (tmp_path / "new" / "folder" / "file").read_bytes() == b"text"


def test_a_failure_leaves_what_was_there(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"before")
    with suppress(ValueError), writing_whole(file) as stream:
        stream.write(b"after")
        raise ValueError
    assert [file] == list(tmp_path.iterdir())
    assert file.read_bytes() == b"before"


def test_a_full_disk_is_said_of_the_file(tmp_path):
    with pytest.raises(OSError, match="No space") as caught, writing_whole(tmp_path / "file"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "file")
