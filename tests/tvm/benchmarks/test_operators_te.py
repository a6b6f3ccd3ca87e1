"""The benchmark's operators compute what TVM's own definitions of them compute."""

import numpy as np
import pytest
import tvm
from tvm import te
from tvm.s_tir.meta_schedule.testing import te_workload as theirs

from benchmarks import operators_te as ours


def _scale_first():
    """Theirs takes the offset before the scale."""
    data, weight, bias, offset, scale, out = theirs.conv2d_nhwc_bn_relu(1, 6, 6, 8, 12, 3, 2, 1)
    return data, weight, bias, scale, offset, out


PAIRS = {
    "C1D": (ours.convolution([6], 8, 12, 3, 2, 1), theirs.conv1d_nlc(1, 6, 8, 12, 3, 2, 1)),
    "C3D": (
        ours.convolution([4, 4, 4], 4, 6, 3, 2, 1),
        theirs.conv3d_ndhwc(1, 4, 4, 4, 4, 6, 3, 2, 1),
    ),
    "GRP": (
        ours.convolution([6, 6], 8, 12, 3, 2, 1, groups=4),
        theirs.conv2d_nhwc(1, 6, 6, 8, 12, 3, 2, 1, groups=4),
    ),
    "DIL": (
        ours.convolution([6, 6], 8, 12, 3, 1, 1, dilation=2),
        theirs.conv2d_nhwc(1, 6, 6, 8, 12, 3, 1, 1, dilation=2),
    ),
    "DEP": (ours.depthwise(6, 8, 3, 2, 1), theirs.depthwise_conv2d_nhwc(1, 6, 6, 8, 3, 2, 1)),
    "T2D": (
        ours.transposed(4, 8, 6, 4, 2, 1),
        theirs.conv2d_transpose_nhwc(1, 4, 4, 8, 6, 4, 2, 1),
    ),
    "CAP": (ours.capsules(6, 8, 6, 3, 2, 1), theirs.conv2d_capsule_nhwijc(1, 6, 6, 8, 6, 3, 2, 1)),
    "GMM": (ours.matmul(6, 7, 8), theirs.batch_matmul_nkkm(1, 6, 7, 8)),
    "NRM": (ours.norm(6, 7), theirs.norm_bmn(1, 6, 7)),
    "ConvLayer": (ours.conv_layer([6, 6], 8, 12, 3, 2, 1), _scale_first()),
}


@pytest.mark.parametrize("name", PAIRS)
def test_values(name):
    mine, reference = (_computed(tensors) for tensors in PAIRS[name])
    np.testing.assert_allclose(mine, reference, rtol=1e-5, atol=1e-5)


def test_attention_scores():
    values = _inputs(ours.attention_scores(5, 2, 3))
    query, key = (value[0].transpose(1, 0, 2) for value in values)
    weights = np.exp(query @ key.transpose(0, 2, 1))
    expected = weights / weights.sum(-1, keepdims=True)
    found = _computed(ours.attention_scores(5, 2, 3))
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)


def test_every_operator_is_a_function():
    free = {
        name: op.function().attrs.get("layout_free_buffers") for name, op in ours.OPERATORS.items()
    }
    assert [name for name, buffers in free.items() if buffers] == ["C2D-fused"]


def _inputs(tensors):
    rng = np.random.default_rng(0)
    shapes = [[int(extent) for extent in tensor.shape] for tensor in tensors[:-1]]
    return [rng.standard_normal(shape).astype("float32") for shape in shapes]


def _computed(tensors):
    func = te.create_prim_func(list(tensors)).with_attr("global_symbol", "main")
    library = tvm.compile(tvm.IRModule({"main": func}), target="llvm")
    out = tvm.runtime.tensor(np.zeros([int(extent) for extent in tensors[-1].shape], "float32"))
    library["main"](*map(tvm.runtime.tensor, _inputs(tensors)), out)
    return out.numpy()
