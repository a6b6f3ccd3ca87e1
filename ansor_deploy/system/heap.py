"""Freed memory that a process keeps for what it needs next.

glibc returns large freed blocks to the system, which then has to map and clear the same pages again
and again. A step of a TVM schedule takes and frees such blocks, and half of its time may go there.
"""

# The largest size, with glibc's own words beside it, that glibc learns anything from.
_BLOCK_BYTES = (32 << 20) - (64 << 10)


def keep_freed_blocks() -> None:
    """Let this process keep freed blocks of up to 32 MB, and up to 64 MB of them unused.

    When glibc frees a block of some size, it takes that for usual: other blocks of up to this size
    come from the heap, and the heap ends with free memory of up to twice the size. The block's
    pages are never touched. Where the user has set MALLOC_* variables, these decide.
    """
    bytes(_BLOCK_BYTES)
