"""Whether a schedule computes all that it reads, as far as TVM's own analysis sees.

A record of others may move a block to a loop that computes part of what the block reads: TVM then
stores that part alone, and the rest is whatever lies there. No output check sees that where nothing
runs the code.
"""

from typing import Any

from .._tvm import collect, tvm


class UncoveredError(ValueError):
    """A schedule of which a block may read what nobody has computed."""


def check_cover(sch: Any) -> None:
    """UncoveredError where a block's axes are beyond TVM's analysis, and what it reads, too.

    Rules' own programs have either now and then, and never both in one block. What a schedule
    knows of itself does not hold after a move, so that it is asked of its program anew
    (`ComputeBlockInfo` in src/s_tir/schedule/state.cc).
    """
    state = tvm.s_tir.Schedule(sch.mod, debug_mask="none").state
    root = sch.mod["main"].body.block
    for block in collect(sch.mod["main"].body, tvm.s_tir.SBlock):
        if block.same_as(root):
            continue
        known = state._get_cached_flags(state.get_sref(block))  # noqa: SLF001 - no other way
        if not (known.affine_binding or known.region_cover):
            raise UncoveredError(f"may read in {block.name_hint} what nothing has computed")
