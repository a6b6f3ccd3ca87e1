"""The benchmark's operators compute what TVM's own definitions of them compute."""

import numpy as np
import pytest
import tvm
from tvm import te
from tvm.s_tir.meta_schedule.testing import te_workload as theirs

from benchmarks.search import operators_te as ours


def _scale_first():
    """Theirs takes the offset before the scale."""
    data, weight, bias, offset, scale, out = theirs.conv2d_nhwc_bn_relu(2, 6, 6, 8, 12, 3, 2, 1)
    return data, weight, bias, scale, offset, out


PAIRS = {
    "C1D": (ours.convolution(1, 2, 6, 8, 12, 3, 2, 1), theirs.conv1d_nlc(2, 6, 8, 12, 3, 2, 1)),
    "C3D": (
        ours.convolution(3, 2, 4, 4, 4, 4, 6, 3, 2, 1),
        theirs.conv3d_ndhwc(2, 4, 4, 4, 4, 6, 3, 2, 1),
    ),
    "GRP": (
        ours.convolution(2, 2, 6, 6, 8, 12, 3, 2, 1, 1, 4),
        theirs.conv2d_nhwc(2, 6, 6, 8, 12, 3, 2, 1, groups=4),
    ),
    "DIL": (
        ours.convolution(2, 2, 6, 6, 8, 12, 3, 1, 1, 2),
        theirs.conv2d_nhwc(2, 6, 6, 8, 12, 3, 1, 1, dilation=2),
    ),
    "DEP": (ours.depthwise(2, 6, 6, 8, 3, 2, 1), theirs.depthwise_conv2d_nhwc(2, 6, 6, 8, 3, 2, 1)),
    "ConvLayer": (ours.conv_layer(2, 6, 6, 8, 12, 3, 2, 1), _scale_first()),
}


@pytest.mark.parametrize("name", PAIRS)
def test_values(name):
    mine, reference = (_computed(tensors) for tensors in PAIRS[name])
    np.testing.assert_allclose(mine, reference, rtol=1e-5, atol=1e-5)


def test_attention_scores():
    values = _inputs(ours.attention_scores(2, 5, 2, 3))
    query, key = (value.transpose(0, 2, 1, 3) for value in values)
    weights = np.exp(query @ key.transpose(0, 1, 3, 2))
    expected = weights / weights.sum(-1, keepdims=True)
    found = _computed(ours.attention_scores(2, 5, 2, 3))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", PAIRS)
def test_the_shapes_are_the_published_ones(name):
    make, published = theirs.CONFIGS[ours.OPERATORS[name].published]
    for batch in ours.BATCHES:
        for number, (_, *arguments) in enumerate(published, 1):
            case = ours.CASES[f"{name}-{number}-b{batch}"]
            found = _shapes(case.operator.make(*case.arguments))
            assert found == _shapes(make(batch, *arguments)), case


def test_the_paper_has_ninety_six_cases_and_begins_with_one_of_each_operator():
    assert len(ours.PAPER_CASES) == 96
    first = [ours.CASES[name] for name in ours.PAPER_CASES[:12]]
    assert [case.name for case in first] == [name for name in ours.OPERATORS if name != "Fused"]
    assert {case.batch for case in first} == {1}


def test_a_case_is_a_function_whose_layouts_are_free_where_a_network_s_are():
    free = {name: ours.CASES[f"{name}-4-b1"].function().attrs for name in ours.OPERATORS}
    assert [name for name, of in free.items() if of.get("layout_free_buffers")] == ["Fused"]


def test_zeros_between_the_inputs_are_no_work():
    case = ours.CASES["T2D-2-b16"]
    assert case.flops == 2.0 * 16 * (16 * 16 * 128) * 256 * (2 * 2)


def _shapes(tensors):
    """Of the inputs with weights, whichever order the others have, and of the output.

    Without extents of one: theirs has one more in a depthwise weight.
    """
    shapes = [tuple(int(one) for one in tensor.shape if int(one) > 1) for tensor in tensors]
    return [*shapes[:2], *sorted(shapes[2:-1]), shapes[-1]]


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
