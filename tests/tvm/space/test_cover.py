"""Schedules that read what they have not computed: refused before anything is built of them."""

import pytest
from helpers import programs

from ansor_deploy._tvm import tvm
from ansor_deploy.space.cover import UncoveredError, check_cover


def emptied_beside(rows):
    """A convolution into a cache, so many pixels at a time, and the cache emptied beside them."""
    sch = tvm.s_tir.Schedule(programs.grouped(), debug_mask="none")
    sums = sch.get_sblock("group_conv2d_nhwc")
    out = sch.cache_write(sums, 0, "global")
    sch.transform_block_layout(sums, lambda n, h, w, c, y, x, k: (n * 64 + h * 8 + w, c, y, x, k))
    outer, _ = sch.split(sch.get_loops(sums)[0], [None, rows])
    sch.reverse_compute_at(out, outer)
    return sch


def test_a_block_that_reads_pixels_of_other_tiles_is_refused():
    with pytest.raises(UncoveredError, match="what nothing has computed"):
        check_cover(emptied_beside(27))


def test_whole_rows_are_all_there():
    check_cover(emptied_beside(16))


def sums_in_one_block():
    """Sums of rows whose loops are a block of its own, with another one in its initialisation."""
    sch = tvm.s_tir.Schedule(programs.reduce("sum", 4, 8, axis=1), debug_mask="none")
    (sums,) = sch.get_child_blocks(sch.get_sblock("root"))
    sch.blockize(sch.get_loops(sums)[0])
    return sch


def test_a_block_of_an_initialisation_reads_nothing():
    check_cover(sums_in_one_block())
