"""A fence around a process that runs code of unknown quality: it writes to one folder alone.

Landlock, which Linux has from 5.13 on, takes rights from a process for good, without any of the
user's: here to change files elsewhere, and from ABI 4 on to open or take connections over TCP.
It holds for the threads that are started afterwards, so it comes before any library that starts
some. Where the kernel has none, nothing is fenced, and nothing is said: `doctor` says it.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path

VARIABLE = "ANSOR_DEPLOY_FENCE"  # the folder of a worker that is to be fenced
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on every architecture
_VERSION, _BENEATH = 1, 1
_NO_NEW_PRIVILEGES = 38
# Bits of rights: to write a file, to remove and make all kinds, to move (ABI 2), to cut (ABI 3).
_WRITES = 1 << 1 | sum(1 << bit for bit in range(4, 13))
_LATER = {2: 1 << 13, 3: 1 << 14}
_OF_A_FILE = 1 << 1 | 1 << 14  # which a rule about one may have
_OF_A_GPU = "nvidia*"  # devices that its driver opens to write
_TCP = 0b11  # to bind, to connect


def abi() -> int:
    """The version of Landlock that the kernel offers; 0 where it has none."""
    if sys.platform != "linux":
        return 0
    return max(0, _libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))


def close_around(folder: str) -> bool:
    """From now on, let this process write in the folder alone, and use no TCP; whether it holds.

    It may also use a GPU.
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
    """Let what lies at a path be written; nothing where there is no such path."""
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
