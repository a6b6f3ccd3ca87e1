"""Whether a schedule computes everything that it reads, as far as TVM's own analysis sees.

A foreign record may move a block into a loop that computes only part of what a consumer reads. TVM
then stores only that part, and the consumer reads garbage beside it. An output check finds that
only where the code is run.
"""

from typing import Any

from .._tvm import collect, tvm


class UncoveredError(ValueError):
    """A block of a schedule may read elements that nothing has computed."""


def check_cover(sch: Any) -> None:
    """UncoveredError where TVM can analyse neither a block's axes nor the regions that it reads.

    Programs of rules have one or the other now and then, but never both in one block. A schedule's
    cached flags are stale after a block was moved, so a fresh schedule of the program is asked
    (`ComputeBlockInfo` in src/s_tir/schedule/state.cc).
    """
    state = tvm.s_tir.Schedule(sch.mod, debug_mask="none").state
    root = sch.mod["main"].body.block
    for block in collect(sch.mod["main"].body, tvm.s_tir.SBlock):
        if block.same_as(root):
            continue
        # TVM keeps nothing of blocks in another block's initialisation, and crashes if it is asked.
        if (place := state.get_sref(block)) is None and not block.reads:
            continue
        known = state._get_cached_flags(place) if place else None  # noqa: SLF001 - no other way
        if known is None or not (known.affine_binding or known.region_cover):
            raise UncoveredError(f"may read in {block.name_hint} what nothing has computed")
