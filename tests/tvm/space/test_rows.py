"""Rows of a reduction become one axis where that changes nothing but the loops."""

import pytest
from helpers import built
from helpers.programs import program
from tvm import te, topi

from ansor_deploy._tvm import tvm
from ansor_deploy.space.block_view import BlockView
from ansor_deploy.space.rows import fuse_rows
from ansor_deploy.space.tile_sizes import batch_axes

IMAGE = (2, 5, 7, 8)


def convolution(epilogue, kernel: int = 1) -> tuple[tvm.s_tir.Schedule, BlockView]:
    """Two images of five rows by seven, 8 to 16 channels, and what is done to each element."""
    x = te.placeholder(IMAGE, name="x")
    weight = te.placeholder((kernel, kernel, 8, 16), name="weight")
    y = topi.nn.conv2d_nhwc(x, weight, 1, (kernel - 1) // 2, 1)
    sch = tvm.s_tir.Schedule(program([x, weight], epilogue(y)), debug_mask="none")
    return sch, BlockView(sch, sch.get_sblock("conv2d_nhwc"))


@pytest.mark.parametrize("kernel", [1, 3])
def test_images_rows_and_positions_are_one_axis(kernel):
    plain, _ = convolution(topi.nn.relu, kernel)
    sch, view = convolution(topi.nn.relu, kernel)
    assert fuse_rows(sch, view) == 7
    assert (view.spatial, view.reduced) == ([70, 16], [8] if kernel == 1 else [3, 3, 8])
    (epilogue,) = view.consumers
    assert epilogue.spatial == [70, 16]
    *_, fused = built.loop_outputs(sch.mod)
    *_, separate = built.loop_outputs(plain.mod)
    assert (fused == separate).all()


def test_an_epilogue_in_another_order_keeps_them_apart():
    sch, view = convolution(lambda y: topi.transpose(y, (0, 2, 1, 3)))
    assert fuse_rows(sch, view) == 0
    assert view.spatial == [2, 5, 7, 16]


def test_axes_of_which_operands_have_some_are_kept_apart():
    x, w = te.placeholder((3, 5, 8), name="x"), te.placeholder((3, 8, 16), name="w")
    y = topi.nn.relu(topi.nn.batch_matmul(x, w, transpose_b=False))
    sch = tvm.s_tir.Schedule(program([x, w], y), debug_mask="none")
    block = next(b for b in sch.get_child_blocks(sch.get_sblock("root")) if sch.get(b).init)
    view = BlockView(sch, block)
    assert fuse_rows(sch, view) == 0
    assert batch_axes(view) == [0]


def test_no_row_of_a_convolution_has_panels_of_its_own():
    _, view = convolution(topi.nn.relu, 3)
    assert batch_axes(view) == []
