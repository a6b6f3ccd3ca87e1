"""The registry: every workload, measurement and record, in one SQLite file."""

from __future__ import annotations

import errno
import sqlite3

from .additions import Additions
from .eviction import Eviction
from .faults import explained
from .forgetting import Forgetting
from .leases import Leases
from .listing import Listing
from .lookups import Lookups


class Registry(Lookups, Listing, Additions, Eviction, Forgetting, Leases):
    """An open registry file: all that can be asked of it, added to it, and done with it."""

    def copy(self) -> Registry:
        """The same in memory, to be changed without changing the file."""
        memory = sqlite3.connect(":memory:", isolation_level=None)
        self.copy_into(memory)
        return Registry(memory, self.path)

    def copy_into(self, other: sqlite3.Connection) -> None:
        """Make another database what this one is at one moment; who writes to either waits."""
        with explained(self.path):
            try:
                self._connection.backup(other)
            except sqlite3.OperationalError as error:
                if "is full" not in str(error):
                    raise
                (*_, name), *_ = other.execute("PRAGMA database_list")  # it is the one that grows
                raise OSError(errno.ENOSPC, str(error), name) from error

    def become(self, other: Registry) -> None:
        """Hold what another one holds, and nothing else."""
        other.copy_into(self._connection)
