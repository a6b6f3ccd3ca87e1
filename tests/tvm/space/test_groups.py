"""Groups of columns that fill no vectors get an axis of their own."""

import numpy as np
import pytest
from helpers import built
from helpers.programs import grouped

from ansor_deploy._tvm import tvm
from ansor_deploy.space.block_view import BlockView, blocks
from ansor_deploy.space.default_schedule import default_module

AVX2, AVX512 = built.with_vectors(32), built.with_vectors(64, 32)


@pytest.mark.parametrize(
    ("width", "target", "columns"), [(5, AVX2, 10), (10, AVX512, 20), (8, AVX2, 48)]
)
def test_sums_are_the_same(width, target, columns):
    mod = grouped(width=width)
    made = default_module(mod, target)
    sch = tvm.s_tir.Schedule(made, debug_mask="none")
    views = [BlockView(sch, block) for block in blocks(sch)]
    (sums,) = [one for one in views if one.name.endswith("_update")]
    assert sums.spatial[-1] == columns
    np.testing.assert_allclose(built.loop_outputs(made)[-1], built.loop_outputs(mod)[-1], 1e-5)
