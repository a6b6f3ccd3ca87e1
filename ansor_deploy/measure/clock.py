"""The processor's clock, as its kernel says: a record has it beside its times."""

import os
import re
from contextlib import suppress
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_CPUINFO = Path("/proc/cpuinfo")  # where the kernel sets no clocks, as in a virtual machine


def megahertz() -> int:
    """That of the fastest of this process's cores now; 0 where the kernel does not say.

    It is asked right after candidates ran: the clock of an idle core is another.
    """
    with suppress(OSError, ValueError):
        paths = [_CPUS / f"cpu{cpu}/cpufreq/scaling_cur_freq" for cpu in os.sched_getaffinity(0)]
        return max(int(path.read_bytes()) for path in paths) // 1000
    with suppress(OSError, ValueError):
        return max(map(int, re.findall(rb"(?m)^cpu MHz\s*: (\d+)", _CPUINFO.read_bytes())))
    return 0
