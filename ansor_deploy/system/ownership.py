"""Whose a file is: what another user of this machine has written is not obeyed unasked."""

import os
import pwd
import stat
from pathlib import Path


def foreign_owner(path: Path) -> str:
    """The name of the user who owns a path, or what its link leads to; "" for this one and root."""
    owners = {path.lstat().st_uid, path.stat().st_uid} - {os.geteuid(), 0}
    return _name(max(owners)) if owners else ""


def is_open_to_all(path: Path) -> bool:
    """Whether any user may change a file, or what is in a folder, apart from one like `/tmp`.

    In such a folder, with the sticky bit, others may only add files, which are then theirs.
    """
    mode = path.stat().st_mode
    is_shared = stat.S_ISDIR(mode) and mode & stat.S_ISVTX
    return bool(mode & stat.S_IWOTH and not is_shared)


def others_may_write(path: Path) -> bool:
    """Whether somebody else may change a file, or put one in its place or beside it.

    Beside it counts, as in `/tmp`: SQLite takes a journal there for the file's own. A file that is
    to come is nobody else's.
    """
    places = [path.resolve(), path.resolve().parent] if path.exists() else []
    return any(foreign_owner(place) or _is_open(place) for place in places)


def others_may_change(path: Path) -> bool:
    """Whether somebody else may change what a file contains."""
    return bool(foreign_owner(path)) or _is_open(path)


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"the user {user}"
