"""Who owns or may change a file: another user's file is not obeyed without asking."""

import os
import pwd
import stat
from pathlib import Path


def foreign_owner(path: Path) -> str:
    """The name of another user who owns a path or its link's target; "" for this user and root."""
    owners = {path.lstat().st_uid, path.stat().st_uid} - {os.geteuid(), 0}
    return _name(max(owners)) if owners else ""


def keeper(path: Path) -> str:
    """The name of another user who alone may replace a file, as in `/tmp`; "" if there is none."""
    if not path.exists() or os.geteuid() in (0, path.parent.stat().st_uid):
        return ""
    return foreign_owner(path) if path.parent.stat().st_mode & stat.S_ISVTX else ""


def is_open_to_all(path: Path) -> bool:
    """Whether any user may change a file, or a folder's content; folders like `/tmp` do not count.

    In such a folder, with the sticky bit, others may only add files, which they then own.
    """
    mode = path.stat().st_mode
    is_shared = stat.S_ISDIR(mode) and mode & stat.S_ISVTX
    return bool(mode & stat.S_IWOTH and not is_shared)


def others_may_write(path: Path) -> bool:
    """Whether another user may change a file, or put one in its place or beside it.

    Files beside it matter, as in `/tmp`: SQLite takes a journal found there for the file's own. For
    a file that does not exist yet, the answer is no.
    """
    places = [path.resolve(), path.resolve().parent] if path.exists() else []
    return any(foreign_owner(place) or _is_open(place) for place in places)


def others_may_change(path: Path) -> bool:
    """Whether another user may change a file's content."""
    return bool(foreign_owner(path)) or _is_open(path)


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"the user {user}"
