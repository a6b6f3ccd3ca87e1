"""Files that appear whole: where, and what a failure leaves."""

import errno
import fcntl
import os
from contextlib import suppress

import pytest

from ansor_deploy.system.atomic_file import held, write_whole, writing_whole


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


def test_writers_of_one_process_number_do_not_meet(tmp_path):
    """As of two containers that share a folder: each gives its processes the same numbers."""
    file = tmp_path / "file"
    with writing_whole(file) as first:
        with writing_whole(file) as second:
            second.write(b"of the second")
        first.write(b"of the first")
    assert file.read_bytes() == b"of the first"
    assert [file] == list(tmp_path.iterdir())


def test_a_lock_that_is_kept_is_not_waited_for_without_end(tmp_path):
    """`flock FOLDER make` keeps it until make ends, which waits for us."""
    keeper = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(keeper, fcntl.LOCK_EX)
    with held(tmp_path, patience=0.01):
        write_whole(tmp_path / "file", b"text")
    os.close(keeper)
    with held(tmp_path), held(tmp_path, patience=0.0):  # the first one has it
        pass
