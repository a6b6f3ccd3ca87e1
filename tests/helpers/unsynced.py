"""No test waits for a disk: only a power cut would lose what is still in memory.

Children of a test write as users' processes do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ansor_deploy.registry import connect

AS_SHIPPED = connect.SYNCHRONOUS


@contextmanager
def unsynced() -> Iterator[None]:
    """Let the system decide when this process's files and registries reach the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        patch.setattr(connect, "SYNCHRONOUS", "OFF")
        yield
