"""The sizes of a kernel's own buffers, and which of them lie on the stack."""

import math
from typing import Any

from ..._tvm import tirx

# Larger buffers go to the heap. A program has a few buffers on the stack at most; the smallest
# stacks that systems give a thread are 128 KiB.
STACK_BYTES = 4096


def size_of(allocation: Any) -> int:
    """Size of a buffer; 0 if it is not constant, or if the buffer is not in the host's memory."""
    buffer = allocation.buffer
    constant = all(isinstance(extent, tirx.IntImm) for extent in buffer.shape)
    if buffer.scope() not in ("global", "local") or not constant:
        return 0
    return math.prod(int(extent) for extent in buffer.shape) * buffer.dtype.itemsize
