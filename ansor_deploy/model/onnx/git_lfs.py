"""Files that Git LFS has not fetched: what lies in their place is a few lines of text."""

from pathlib import Path

from ...errors import ModelError
from ...system.regular_file import open_regular
from .file_digest import unreadable

_BEGIN = b"version https://git-lfs.github.com/spec/"


def check_fetched(path: Path, what: str) -> None:
    """ModelError where a file is a pointer of Git LFS. what: that it is, for the message."""
    try:
        with open_regular(path) as file:
            begin = file.read(len(_BEGIN))
    except OSError as error:
        raise unreadable(path, error) from error
    if begin == _BEGIN:
        hint = "Fetch its content: git lfs pull (Git LFS may have to be installed first)."
        raise ModelError(f"{what} is a Git LFS pointer, a text in its place", hint)
