"""A fence around a process that runs untrusted code: it may write to one folder only.

Landlock, part of Linux from 5.13 on, takes rights from a process for good, and needs no privileges:
here the rights to change files elsewhere and, from ABI 4 on, to bind or connect TCP sockets.
Threads that already run keep their rights, so the fence comes before any library that starts
threads. A kernel without Landlock fences nothing, silently; `doctor` reports it.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path

VARIABLE = "ANSOR_DEPLOY_FENCE"  # names the folder that a fenced worker may write to
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, with equal numbers on every architecture
_VERSION = 1  # flag of _CREATE: only return the ABI's version
_BENEATH = 1  # type of a rule: rights beneath a path
_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS of prctl
# Rights to write files, and to remove and create files of all kinds.
_WRITES = 1 << 1 | sum(1 << bit for bit in range(4, 13))
# Further rights, by the ABI that has them first: to move files between folders, to truncate.
_LATER = {2: 1 << 13, 3: 1 << 14}
_OF_A_FILE = 1 << 1 | 1 << 14  # the rights that a rule about a file, and not a folder, may have
_OF_A_GPU = "nvidia*"  # device files that its driver opens for writing
_TCP = 0b11  # rights to bind and to connect


def abi() -> int:
    """The version of Landlock that the kernel offers, or 0 if it has none."""
    if sys.platform != "linux":
        return 0
    return max(0, _libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))


def close_around(folder: str) -> bool:
    """Let this process write to the folder only, and use no TCP, from now on; whether that holds.

    GPUs and the null device stay usable.
    """
    version, libc = abi(), _libc()
    writes = _WRITES | sum(bit for least, bit in _LATER.items() if version >= least)
    rights = struct.pack("=QQ", writes, _TCP if version >= 4 else 0)[: 16 if version >= 4 else 8]
    rules = libc.syscall(_CREATE, rights, ctypes.c_size_t(len(rights)), 0) if version else -1
    if rules < 0:
        return False
    try:
        _allow(libc, rules, folder, writes)
        for device in (os.devnull, *map(str, Path("/dev").glob(_OF_A_GPU))):
            _allow(libc, rules, device, writes & _OF_A_FILE)
        alone = libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
        return alone and libc.syscall(_RESTRICT, rules, 0) == 0
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    """Grant rights on a path; nothing where there is no such path."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        libc.syscall(_ADD, rules, _BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
