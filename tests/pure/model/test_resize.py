"""Resize and Upsample as ONNX Runtime computes them: many manners and sizes a model.

What a node is rewritten to is run by ONNX Runtime as well, so that nothing is compiled here;
`tests/tvm/model/test_resize.py` compiles some.
"""

from itertools import product

import numpy as np
import pytest
from helpers.graphs import assert_same, model, node, ops, randn, random_feeds, run
from onnx import helper

from ansor_deploy.errors import ModelError
from ansor_deploy.model.canonicalize import canonicalize

COORDINATES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners"),
    *("asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"),
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
MIDDLES = (  # coordinates that lie between two elements, but for the last bit
    ((20,), {"sizes": (6,)}),
    ((16,), {"scales": (0.6,)}),
    ((7,), {"sizes": (2,)}),
    ((4,), {"sizes": (13,)}),
    ((10, 11), {"scales": (1.5, 0.3)}),
    ((4, 9), {"sizes": (9, 22)}),
    ((2, 3, 11, 7), {"sizes": (2, 3, 5, 2)}),
)
IMAGES = (
    ((7, 9), {"sizes": (3, 14)}),
    ((4, 5), {"scales": (1.5, 0.6)}),
    ((1, 8), {"sizes": (4, 1)}),
    ((2, 3, 5, 4), {"sizes": (2, 3, 5, 11)}),
    ((1, 2, 6, 7), {"scales": (1, 1, 2.3, 0.45)}),
)
CUBIC = ({}, {"cubic_coeff_a": -0.5}, {"exclude_outside": 1})


def resized(cases, opset=19):
    """A model with a Resize a case: (shape, sizes or scales, attributes, region of interest)."""
    nodes, inputs, constants = [], {}, {}
    for at, (shape, extent, attributes, region) in enumerate(cases):
        (kind, values), names = *extent.items(), ["-", "-", "-"]
        names[("roi", "scales", "sizes").index(kind)] = f"{kind}{at}"
        constants[f"{kind}{at}"] = np.array(values, np.float32 if kind == "scales" else np.int64)
        if region is not None:
            names[0], constants[f"roi{at}"] = f"roi{at}", np.float32(region)
        inputs[f"x{at}"] = shape
        nodes.append(node("Resize", f"x{at} {' '.join(names)}", f"y{at}", **attributes))
    return model(nodes, inputs, [f"y{at}" for at in range(len(nodes))], constants, opset)


def case(shape, extent, coordinates, **attributes):
    attributes["coordinate_transformation_mode"] = coordinates
    if coordinates != "tf_crop_and_resize":
        return shape, extent, attributes, None
    whole = [(0.0, 1.0)] * max(0, len(shape) - 2)
    begins, ends = zip(*whole, *((-0.2, 0.9), (0.1, 1.3))[-len(shape) :], strict=True)
    return shape, extent, {**attributes, "extrapolation_value": -7.5}, (*begins, *ends)


def assert_like_oracle(proto, rtol=1e-4):
    rewritten = canonicalize(proto)
    feeds = random_feeds(proto)
    pairs = zip(run(proto, feeds), run(rewritten, feeds), proto.graph.node, strict=True)
    for want, have, made in pairs:
        np.testing.assert_allclose(have, want, rtol, rtol, err_msg=str(made))


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_the_nearest_element(coordinates):
    choices = product(MIDDLES, ROUNDINGS)
    cases = [
        case(*extent, coordinates, mode="nearest", nearest_mode=one) for extent, one in choices
    ]
    assert_like_oracle(resized(cases), rtol=0)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("antialias", [0, 1])
def test_interpolation(coordinates, antialias):
    alike = {"antialias": antialias}
    manners = [{"mode": "linear"}, *({"mode": "cubic", **one} for one in CUBIC)]
    manners += [{"mode": "linear", "exclude_outside": 1}] if antialias else []
    choices = product(IMAGES, manners)
    assert_like_oracle(
        resized([case(*extent, coordinates, **alike, **manner) for extent, manner in choices])
    )


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_what_keeps_its_proportions(policy):
    sizes, kept = {"sizes": (7, 8)}, {"axes": (2, 3), "keep_aspect_ratio_policy": policy}
    modes = ({"mode": mode, "antialias": on} for mode in ("linear", "cubic") for on in (0, 1))
    manners = ({"mode": "nearest"}, *modes)
    assert_like_oracle(resized([((2, 3, 5, 11), sizes, {**kept, **m}, None) for m in manners]))


@pytest.mark.parametrize("mode", ["linear", "trilinear", "nearest"])
def test_volumes(mode):
    shape = (5, 6, 7) if mode == "trilinear" else (1, 2, 3, 4, 5)
    extent = {"sizes": (*shape[:-3], 7, 4, 9)}
    name = "nearest" if mode == "nearest" else "linear"
    manners = product(COORDINATES[:-1], (0, 1) if name == "linear" else (0,))
    cases = [case(shape, extent, one, mode=name, antialias=on) for one, on in manners]
    assert_like_oracle(resized(cases))


@pytest.mark.parametrize(
    "scales", [(1.0, 1.0, 2.0, 2.0), (1.0, 1.0, 1.5, 2.5), (1.0, 1.0, 0.6, 0.3)]
)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_as_it_was_before_opset_11(mode, scales):
    constants, x = {"s": np.float32(scales)}, {"x": (1, 2, 9, 8)}
    assert_like_oracle(model([node("Resize", "x s", "y", mode=mode)], x, ["y"], constants, 10))
    if min(scales) >= 1:
        upsample = [node("Upsample", "x s", "y", mode=mode)]
        assert_like_oracle(model(upsample, x, ["y"], constants, 9))
        upsample = [node("Upsample", "x", "y", mode=mode, scales=scales)]
        assert_like_oracle(model(upsample, x, ["y"], opset=7))


def test_a_crop_of_the_same_size_is_none():
    proto = resized([case((4, 6), {"sizes": (4, 6)}, "tf_crop_and_resize", mode="linear")])
    assert ops(canonicalize(proto)) == ["Identity"]
    assert_like_oracle(proto, rtol=0)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"mode": "quintic"}, "`mode` is quintic"),
        ({"nearest_mode": "up"}, "`nearest_mode` is up"),
        ({"axes": (0, 0)}, "`axes` is"),
        ({"axes": (0, 5)}, "`axes` is"),
    ],
)
def test_what_no_formula_is_known_for_is_refused(changed, says):
    proto = resized([((4, 6), {"sizes": (5, 5)}, {"mode": "nearest"}, None)])
    proto.graph.node[0].attribute.extend(node("Resize", "x", "y", **changed).attribute)
    if "mode" in changed:
        del proto.graph.node[0].attribute[0]
    with pytest.raises(ModelError, match=says):
        canonicalize(proto)


def test_a_region_of_too_few_numbers_is_refused():
    crop = case((4, 6), {"sizes": (5, 5)}, "tf_crop_and_resize", mode="nearest")
    with pytest.raises(ModelError, match="`roi` has 2 numbers for 2 axes"):
        canonicalize(resized([(*crop[:3], (0.0, 1.0))]))


@pytest.mark.parametrize("opset", [9, 10, 13])
def test_sizes_by_scales_are_onnx_runtimes(opset):
    """In float32, 24 x (40 / 24) is 40, as exporters mean; ONNX's shape inference makes 39."""
    op, words = "Upsample" if opset < 10 else "Resize", "{} {}" if opset < 11 else "{} - {}"
    constants = {f"s{at}": np.float32([1, scale]) for at, scale in enumerate((40 / 24, 104 / 40))}
    nodes = [
        node(op, words.format("x", "s0"), "a", mode="linear"),
        node(op, words.format("a", "s1"), "y", mode="nearest"),
    ]
    inputs = {"x": (2, 24)}
    proto = model(nodes, inputs, ["a", "y"], constants, opset)
    assert_like_oracle(proto)
    assert canonicalize(proto).graph.output[1].type.tensor_type.shape.dim[1].dim_value == 104


def test_a_region_of_an_image_that_each_row_chooses():
    """As TensorFlow's crop_and_resize is exported, where the number of a step is a list of one."""
    values = {"i": (7, (1,)), "goes": (9, ()), "goes_on": (9, ()), "part": (1, (3, 5, 4))}
    infos = [helper.make_tensor_value_info(name, *kind) for name, kind in values.items()]
    body = [
        node("Add", "i one", "j"), node("Slice", "rows i j zero", "row"),
        node("Reshape", "row four", "box"), node("Slice", "box zero two", "begin"),
        node("Slice", "box two four", "end"), node("Concat", "noughts begin ones end", "r", axis=0),
        node("Slice", "of i j zero", "k"), node("Add", "k one", "l"),
        node("Slice", "image k l zero", "chosen"), node("Shape", "chosen", "form"),
        node("Slice", "form zero two", "whole"), node("Concat", "whole sides", "sizes", axis=0),
        node("Resize", "chosen r - sizes", "resized", mode="linear", extrapolation_value=3.0,
             coordinate_transformation_mode="tf_crop_and_resize"),
        node("Squeeze", "resized zero", "part"), node("Identity", "goes", "goes_on"),
    ]  # fmt: skip
    step = helper.make_graph(body, "step", infos[:2], infos[2:])
    nodes = [
        node("ArgMin", "rows", "least", axis=1, keepdims=0), node("Mul", "least none", "of"),
        node("Loop", "n true", "y", body=step),
    ]  # fmt: skip
    constants = {
        "zero": np.array([0]), "one": np.array([1]), "two": np.array([2]), "four": np.array([4]),
        "noughts": np.zeros(2, np.float32), "ones": np.ones(2, np.float32), "n": np.array(6),
        "sides": np.array([5, 4]), "image": randn(3, 1, 3, 9, 8), "true": np.array(True),
        "none": np.array(0),
    }  # fmt: skip
    proto = model(nodes, {"rows": (6, 4)}, constants=constants)
    assert_same(proto, canonicalize(proto), 1e-5)
