"""Which measurements are facts about a schedule: version 0.1.0 kept faults of its machine as well.

They stay where they are, and count for nothing; nor does the end of a search that met them.
"""

import errno
import os

_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO, errno.EAGAIN)
# What such a message says. Of memory only what building lacked: a run has a limit of its own.
_SAID = (*map(os.strerror, _NUMBERS), "SIGKILL", "building: MemoryError")
_FAULT = " OR ".join(f"instr(m.message, '{said}')" for said in _SAID)

# Of a measurement `m`.
FACT = f"(m.error = '' OR NOT ({_FAULT}))"
# Of a search `s`: it is the first that ended after such a fault.
_CREATED = "json_extract(m.provenance, '$.created')"
UNDISTURBED = f"""
    NOT EXISTS (
        SELECT 1 FROM measurements AS m
        WHERE m.target = s.target AND m.workload = s.workload
        AND m.error <> '' AND ({_FAULT}) AND {_CREATED} <= s.created AND NOT EXISTS (
            SELECT 1 FROM searches AS e
            WHERE e.workload = s.workload AND e.target = s.target
            AND e.id < s.id AND e.created >= {_CREATED}
        )
    )
"""  # noqa: S608 - constants
