"""Resize as ONNX Runtime computes it: modes, coordinates, whole and broken scales."""

import numpy as np
import pytest
from helpers import graphs
from helpers.built import HOST, assert_like_oracle, count_ops, imported, run
from helpers.graphs import model, node, ops
from helpers.together import Together
from onnx import TensorProto

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize
from ansor_deploy.model.operators.sampling import Axis, Manner, taps
from ansor_deploy.model.relax.extract import extract
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.rule import shipped_rules

ENDS = {"uint8": (0, 256), "int8": (-128, 128)}
ALIGNED = "coordinate_transformation_mode"


def resized(shape, opset=19, sizes=None, scales=None, inputs="x - s", **attributes):
    constants = {"s": np.float32(scales)} if scales else {"s": np.array(sizes)}
    read = inputs if scales else "x - - s"
    return model(
        [node("Resize", read, "y", **attributes)], {"x": shape}, constants=constants, opset=opset
    )


MANNERS = [
    {"mode": "cubic", "scales": (1, 1, 0.8, 1.7)},
    {"mode": "linear", "scales": (1, 1, 0.6, 0.6), "antialias": 1},
    {"mode": "linear", "sizes": (2, 3, 5, 1), ALIGNED: "align_corners"},
    {"mode": "nearest", "sizes": (2, 3, 9, 5), "nearest_mode": "ceil"},
    {"mode": "nearest", "scales": (1, 1, 2, 3)},
]


@pytest.fixture(scope="module")
def images():
    made = {at: resized((2, 3, 4, 6), **how) for at, how in enumerate(MANNERS)}
    return Together({**made, "both": with_empty_lists()})


def with_empty_lists():
    """As exporters of opset 11 write it, which has to name a region and scales beside sizes."""
    none = np.zeros(0, np.float32)
    constants = {"none": none, "s": np.array((2, 3, 8, 12))}
    words = {"nearest_mode": "floor", ALIGNED: "asymmetric"}
    nodes = [node("Resize", "x none none s", "y", **words)]
    return model(nodes, {"x": (2, 3, 4, 6)}, constants=constants, opset=14)


@pytest.mark.parametrize("at", [*range(len(MANNERS)), "both"])
def test_like_onnx_runtime(at, images):
    images.assert_like_oracle(at)


def test_weights_far_from_the_origin_are_those_of_onnx_runtime():
    proto = resized(
        (1, 1, 2, 512), sizes=(1, 1, 3, 200), mode="linear", **{ALIGNED: "align_corners"}
    )
    feed = {"x": graphs.randn(0, 1, 1, 2, 512)}
    np.testing.assert_allclose(run(proto, feed)[0], graphs.run(proto, feed)[0], atol=1e-6)


def test_as_it_was_before_opset_11():
    assert_like_oracle(resized((1, 2, 3, 4), opset=10, inputs="x s", scales=(1, 1, 2, 1.5)))


def test_as_exporters_write_it():
    assert_like_oracle(resized((1, 2, 4, 4), opset=13, scales=(1, 1, 2, 2), mode="linear"))


def test_whole_upscaling_of_images_stays_one_operator():
    assert ops(canonicalize(resized((1, 2, 4, 4), scales=(1, 1, 2, 2)))) == ["Resize"]
    assert ops(canonicalize(with_empty_lists())) == ["Resize"]


def of_kind(kind, shape, **attributes):
    proto = resized(shape, **attributes)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = kind
    return proto


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("scales", [(1, 1, 2, 2), (1, 1, 0.6, 1.7)])
def test_bytes_between_two_are_rounded_towards_zero(kind, scales):
    element = TensorProto.UINT8 if kind == "uint8" else TensorProto.INT8
    proto = of_kind(element, (2, 3, 8, 6), mode="linear", scales=scales)
    feed = {"x": np.random.default_rng(0).integers(*ENDS[kind], (2, 3, 8, 6)).astype(kind)}
    have, want = run(proto, feed)[0].astype(int), graphs.run(proto, feed)[0].astype(int)
    # Of broken weights a sum may be just below a whole number, and another order of it that number.
    most = 0 if scales == (1, 1, 2, 2) else 0.01
    assert np.abs(have - want).max() <= 1
    assert np.mean(have != want) <= most


@pytest.mark.parametrize(
    ("kind", "mode", "antialias"),
    [(TensorProto.INT64, "linear", 0), (TensorProto.INT8, "cubic", 0), (2, "linear", 1)],
)
def test_other_whole_numbers_between_two_are_refused(kind, mode, antialias):
    proto = of_kind(kind, (1, 1, 4, 4), mode=mode, sizes=(1, 1, 3, 3), antialias=antialias)
    with pytest.raises(ModelError, match="Resize: of whole numbers, only bytes"):
        canonicalize(proto)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_weights_add_up_to_one(mode, antialias):
    manner = Manner(mode, "half_pixel", "floor", -0.75, False, antialias)
    indices, weights = taps(Axis(0, 9, 4, np.float32(4 / 9)), manner)
    assert np.allclose(weights.sum(1), 1)
    assert 0 <= indices.min() <= indices.max() <= 8


MODES = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]


@pytest.fixture(scope="module")
def growing():
    x = graphs.randn(0, 1, 3, 5, 12)
    x[0, 1, 2, 7] = np.inf
    size = {"scales": (1, 1, 2, 4), "mode": "linear"}
    models = {mode: resized((1, 3, 5, 12), **size, **{ALIGNED: mode}) for mode in MODES}
    return Together(models, {mode: {"x": x} for mode in MODES})


@pytest.mark.parametrize("mode", MODES)
def test_a_vector_of_an_image_that_grows_reads_a_few_columns(mode, growing):
    (have,), (want,) = growing.outputs(mode), growing.expected(mode)
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def test_what_is_transposed_of_an_image_that_grows_is_the_small_one():
    size = {"scales": np.float32([1, 1, 4, 4]), "w": graphs.randn(1, 21, 3, 3, 3)}
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Resize", "c - scales", "y", mode="linear"),
    ]
    proto = model(nodes, {"x": (1, 3, 8, 8)}, constants=size)
    assert not any("resize" in kernel and "transpose" in kernel for kernel in count_ops(proto))
    assert_like_oracle(proto)


def test_elements_between_others_take_no_kernel_for_each_look_up():
    policy = {"keep_aspect_ratio_policy": "stretch"}
    proto = resized((1, 16, 12, 12), scales=(1, 1, 2, 2), mode="linear", **policy)
    assert sum(count_ops(proto).values()) <= 2, "one an axis"
    assert_like_oracle(proto)


def test_what_puts_patches_together_becomes_part_of_a_resize():
    """As MobileViT does where patches do not divide its image."""
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1, 3]),
        node("Reshape", "t image", "r"),
        node("Resize", "r - - s", "y", mode="linear"),
    ]
    constants = {"image": np.array((1, 8, 8, 8)), "s": np.array((1, 8, 7, 7))}
    proto = model(nodes, {"x": (32, 4, 2, 2)}, constants=constants, opset=19)
    for task in extract(imported(proto, HOST).mod, HOST).values():
        assert not derive(task.mod, HOST, shipped_rules(HOST.kind)).faults
    assert_like_oracle(proto)
