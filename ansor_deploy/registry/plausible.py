"""Times that no machine can have taken: of others they are refused, of this machine taken again.

Only what a target's fingerprint says counts: its peak and bandwidth are declared for estimates, and
may be far too low. What is assumed beyond is more than any processor has, so that no true time is
refused, whatever lies in a cache.
"""

import math
from collections.abc import Sequence
from typing import Any

from ..target import Target
from .record import Workload

CALL_SECONDS = 2e-9  # the call of an empty function; of small kernels some take 6 ns
SLOWEST = 3600.0  # seconds

_CLOCK = 8e9  # cycles a second
# A cycle of a core, for each byte of a vector register: two units multiply and add bytes, or a
# quarter as many numbers of float32: room for a convolution that takes a quarter of the products.
_OPERATIONS = 4
_BYTES = 8  # two loads and two stores; and half of what is counted may be behind a condition
# A cycle of a multiprocessor: its tensor cores on the smallest types, and its shared memory.
_GPU_OPERATIONS, _GPU_BYTES = 1 << 14, 1 << 10


def least_seconds(workload: Workload, target: Target) -> float:
    """Seconds below which no run of a workload can be.

    The roofline (Williams et al., 2009) of the fastest machine with the target's cores and vectors,
    and with memory as fast as its first cache.
    """
    if target.gpu is not None:
        units, operations, width = target.gpu.sms, _GPU_OPERATIONS, _GPU_BYTES
    else:
        vector = target.vector_bytes
        units, operations, width = target.cores, vector * _OPERATIONS, vector * _BYTES
    cycles = max(workload.flops / operations, workload.bytes / width) / units
    return max(CALL_SECONDS, cycles / _CLOCK)


def impossible(seconds: Any, least: float = CALL_SECONDS) -> str:
    """Why these are no times of one run, each at least so long; "" if they may be.

    seconds: of each repeat, from wherever: anything may stand there.
    """
    if not isinstance(seconds, Sequence) or not seconds:
        return "there is no time of a run"
    if not all(type(one) is float and math.isfinite(one) and one <= SLOWEST for one in seconds):
        return "there is a time that is none of a run"
    if (fastest := min(seconds)) < least:
        return f"no machine does this in {fastest:.3g} s: it takes at least {least:.3g} s"
    return ""
