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
    """An open registry file, with all queries and all changes."""

    def copy(self) -> Registry:
        """A copy in memory, which can be changed without changing the file."""
        memory = sqlite3.connect(":memory:", isolation_level=None)
        self.copy_into(memory)
        return Registry(memory, self.path)

    def copy_into(self, other: sqlite3.Connection) -> None:
        """Copy this database into another, as it is at one moment; writers to either wait."""
        with explained(self.path):
            try:
                self._connection.backup(other)
            except sqlite3.OperationalError as error:
                if "is full" not in str(error):
                    raise
                (*_, name), *_ = other.execute("PRAGMA database_list")  # only the copy grows
                raise OSError(errno.ENOSPC, str(error), name) from error

    def become(self, other: Registry) -> None:
        """Replace all content by that of another registry."""
        other.copy_into(self._connection)
