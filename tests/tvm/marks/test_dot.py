"""Sums of bytes by fours: the same to the last bit, at the greatest bytes, by each instruction."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import built
from helpers.byte_models import Products, extreme, integers, product
from helpers.graphs import node, typed
from helpers.together import Together
from onnx import TensorProto, helper, numpy_helper

from ansor_deploy._tvm import collect, elements, tvm
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import lacks
from ansor_deploy.target import load_target

AVX2, WIDE, ARM = (
    load_target(name, [shipped("targets")])
    for name in ("intel-cpu-avx2", "intel-cpu-avx512", "cortex-a53")
)
AVX2, WIDE = (
    replace(one, cpu=f"x86-64-{cpu}", cores=1) for one, cpu in ((AVX2, "v3"), (WIDE, "v4"))
)
# Of each target, the instruction that its sums are made by.
TARGETS = {
    "VNNI": (replace(WIDE, features=("+avx512vnni",)), "vpdpbusd"),
    "AVX-VNNI": (replace(AVX2, features=("+avxvnni",)), "vpdpbusd"),
    "AVX-512": (WIDE, "vpmaddwd"),
    "AVX2": (AVX2, "vpmaddwd"),
    "SSE4": (replace(AVX2, cpu="x86-64-v2", vector_bytes=16), "pmaddwd"),
}
RNG = np.random.default_rng(0)


SHAPES = [
    *((7, 64, 48), (5, 12, 24), (13, 20, 72), (1, 128, 64), (6, 32, 49), (9, 64, 77), (3, 20, 117))
]


def here(name):
    """A target whose code this processor runs; the test is skipped where it does not."""
    target, _ = TARGETS[name]
    if lacks(target.triple, target.cpu, target.features):
        pytest.skip("this processor lacks the instructions")
    return target


@pytest.fixture(scope="module", params=TARGETS)
def products(request):
    return Products(SHAPES, here(request.param))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_sum_saturates(shape, products):
    products.assert_no_sum_saturates(shape)


@pytest.mark.parametrize("name", ["VNNI", "AVX-512", "AVX2"])
@pytest.mark.parametrize("columns", [49, 50, 77, 197])
def test_columns_that_are_left_over_are_summed_up_at_once(columns, name):
    target, instruction = TARGETS[name]
    made = built.machine_code(product(7, 64, columns), target)
    assert instruction in made
    assert "mulld" not in made


CONVOLUTIONS = {
    "padded": ((16, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
    "in steps": ((20, 8, 5, 3), {"pads": [2, 0, 2, 1], "strides": [2, 1]}),
    "of three channels": ((16, 3, 7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
    "dilated": ((16, 4, 3, 3), {"dilations": [2, 2], "pads": [2, 1, 2, 1]}),
    "of one tap": ((16, 4, 1, 1), {"pads": [1, 1, 0, 1]}),
    "of one tap and three channels": ((16, 3, 1, 1), {"pads": [0, 0, 2, 0]}),
    "in groups": ((16, 4, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    "in groups that become one": ((24, 6, 1, 1), {"group": 4}),
    "in groups of four": ((128, 4, 3, 3), {"group": 32, "pads": [1, 1, 1, 1]}),
    "in groups of a vector": ((32, 8, 3, 3), {"group": 2, "pads": [0, 1, 1, 0]}),
    "in groups of more than a vector": ((40, 20, 1, 1), {"group": 2}),
    "in groups of pairs": ((48, 6, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    "in odd groups": ((18, 2, 2, 2), {"group": 9}),
    "of single channels": ((8, 1, 3, 3), {"group": 8, "pads": [1, 1, 1, 1]}),
    "of a vector of single channels": ((48, 1, 3, 3), {"group": 48, "pads": [1, 1, 1, 1]}),
    "of many lines, in steps": ((16, 1, 5, 5), {"group": 16, "pads": [2] * 4, "strides": [2, 2]}),
    "of dilated lines": ((32, 1, 3, 4), {"group": 32, "dilations": [2, 1], "pads": [2, 0, 1, 1]}),
    "of lines of one tap": ((32, 1, 4, 1), {"group": 32, "strides": [3, 2]}),
}


@pytest.fixture(scope="module")
def bordered():
    """The convolutions, of weights that have a zero point, and that have none, in turns."""
    models = {}
    for turn, (name, (size, given)) in enumerate(CONVOLUTIONS.items()):
        zeros = {"xz": np.uint8(131), "wz": np.int8(3 * (turn % 2))}
        made = node("ConvInteger", "x w xz wz", "o", **given)
        data = 2, size[1] * given.get("group", 1), 9, 10
        models[name] = integers(made, extreme(*size), *data, **zeros)
    return fed(models)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_border_is_the_zero_point(name, bordered):
    models, made = bordered
    wanted = centred(models[name], made.feeds[name]["x"])
    np.testing.assert_array_equal(made.outputs(name)[0], wanted)


# Of each convolution of few channels, the steps that its weights have for a result, with AVX2.
FEW_CHANNELS = {
    "in steps": ((16, 3, 3, 3), {"pads": [1, 0, 1, 2], "strides": [2, 2]}, 3 * 10),
    "of odd ends": ((24, 3, 7, 7), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}, 7 * 22),
    "of dilated lines": ((16, 2, 2, 3), {"dilations": [3, 1], "pads": [1, 2, 3, 0]}, 2 * 6),
    "of one channel": ((16, 1, 3, 5), {"pads": [1] * 4}, 3 * 6),
}


@pytest.mark.parametrize("name", ["VNNI", "AVX2"])
def test_taps_of_few_channels_are_summed_up_as_one_run_of_a_line(name):
    """No pixel is filled up to four channels, which would multiply as many zeros."""
    models, made = fed(
        {
            one: integers(node("ConvInteger", "x w xz wz", "o", **given), extreme(*size), 2,
                          size[1], 9, 11, xz=np.uint8(131), wz=np.int8(0))
            for one, (size, given, _) in FEW_CHANNELS.items()
        },
        target := here(name),
    )  # fmt: skip
    for one, (size, _, steps) in FEW_CHANNELS.items():
        wanted = centred(models[one], made.feeds[one]["x"])
        np.testing.assert_array_equal(made.outputs(one)[0], wanted)
        if name == "AVX2":
            assert steps * size[0] in weights(models[one], target)


def weights(proto, target):
    """The numbers of elements of a model's constants of signed bytes."""
    main = built.imported(proto, target).mod["main"]
    found = [elements(one) for one in collect(main, tvm.ir.GenericConst)]
    return [one.size for one in found if one.dtype == np.int8]


@pytest.mark.parametrize("name", ["VNNI", "AVX-VNNI", "AVX2"])
def test_four_lines_of_single_channels_are_summed_up_at_once(name):
    zeros = {"xz": np.uint8(131), "wz": np.int8(0)}
    models = {
        taps: integers(
            node("ConvInteger", "x w xz wz", "o", group=64, pads=[taps // 2] * 4),
            extreme(64, 1, taps, taps), 1, 64, 17, 19, **zeros,
        )
        for taps in (3, 5)
    }  # fmt: skip
    models, made = fed(models, target := here(name))
    for taps, proto in models.items():
        wanted = centred(proto, made.feeds[taps]["x"])
        np.testing.assert_array_equal(made.outputs(taps)[0], wanted)
        assert ("vpdpbusd" in built.machine_code(proto, target)) == (name != "AVX2")


def fed(models, target=built.HOST):
    """Models of bytes, and a library of all of them with inputs of any bytes."""
    feeds = {}
    for name, proto in models.items():
        shape = [one.dim_value for one in proto.graph.input[0].type.tensor_type.shape.dim]
        feeds[name] = {"x": RNG.integers(0, 256, shape).astype(np.uint8)}
    return models, Together(models, feeds, target)


def centred(proto, x):
    """Conv of what is left of bytes without their zero points, in float32, exact here."""
    weight, xz, wz = (numpy_helper.to_array(one).astype(int) for one in proto.graph.initializer)
    (made,) = proto.graph.node
    given = {one.name: helper.get_attribute_value(one) for one in made.attribute}
    x = (x.astype(int) - xz).astype(np.float32)
    conv = helper.make_node("Conv", ["x", "w"], ["o"], **given)
    model = typed([conv], {"x": x}, {"o": "float32"}, {"w": (weight - wz).astype(np.float32)})
    return built.graphs.run(model, {"x": x})[0]


@pytest.mark.parametrize(("target", "instruction"), TARGETS.values(), ids=TARGETS)
def test_processors_get_their_instruction(target, instruction):
    assert instruction in built.machine_code(product(16, 64, 64), target)


@pytest.mark.parametrize("name", ["AVX-512", "AVX2"])
def test_pairs_are_of_rows_that_were_widened_before(name):
    """In the loop over steps nothing but weights is widened, and nothing goes to the stack."""
    made = built.machine_code(product(96, 64, 64), TARGETS[name][0])
    loops = [part for part in made.split(".LBB") if part.count("vpmaddwd") > 4]
    assert loops
    for loop in loops:
        vectors, rest = divmod(loop.count("vpmaddwd"), loop.count("vpbroadcastd"))
        assert loop.count("vpmovsxbw") in (0, vectors)
        assert not rest
        assert "vpmovzxbw" not in loop


@pytest.mark.parametrize("depth", [4, 8, 64])
def test_few_steps_get_it_as_well(depth):
    """Of four in all none is left to divide."""
    assert "vpdpbusd" in built.machine_code(product(16, depth, 64), TARGETS["VNNI"][0])


@pytest.mark.parametrize("groups", [4, 32])
def test_groups_are_joined_until_they_fill_vectors(groups):
    weight = extreme(128, 128 // groups, 1, 1)
    proto = integers(node("ConvInteger", "x w", "o", group=groups), weight, 1, 128, 4, 4)
    assert "vpdpbusd" in built.machine_code(proto, TARGETS["VNNI"][0])


@pytest.mark.parametrize("name", ["VNNI", "AVX-512", "AVX2"])
def test_groups_of_more_than_a_vector_are_not_joined(name):
    """Joined to fill vectors, they would be multiplied by three times as many zeros as weights."""
    target, instruction = TARGETS[name]
    made = node("ConvInteger", "x w", "o", group=4)
    proto = integers(made, extreme(272, 68, 1, 1), 1, 272, 4, 4)
    assert 272 * 68 in weights(proto, target)
    assert instruction in built.machine_code(proto, target)


@pytest.mark.parametrize("columns", [1000, 72, 40])
def test_columns_that_are_no_whole_tiles_get_it_as_well(columns):
    """No element asks whether it is the last: all are multiplied by it."""
    made = built.machine_code(product(1, 64, columns), TARGETS["VNNI"][0])
    assert "vpdpbusd" in made
    assert "vpmulld" not in made


@pytest.mark.parametrize("columns", [64, 72])
def test_a_processor_that_multiplies_signed_bytes_adds_up_pairs(columns):
    made = built.machine_code(product(16, 20, columns), ARM)
    assert all(each in made for each in ("smlal2", "sadalp", "tbl"))
    assert "sshll" not in made, "no weight is widened before it is multiplied"


SHIFTED = {
    "one zero point": (np.uint8(96), (24, 20)),
    "a zero point for each column": (RNG.integers(0, 256, 20).astype(np.uint8), (24, 20)),
}


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
@pytest.mark.parametrize(("zero", "size"), SHIFTED.values(), ids=SHIFTED)
def test_weights_beyond_a_signed_byte(zero, size, signed):
    kind = np.int8 if signed else np.uint8
    x = RNG.integers(-128, 128, (6, size[0])).astype(kind)
    weight = RNG.integers(0, 256, size).astype(np.uint8)
    made = node("MatMulInteger", "x w xz wz", "o")
    proto = integers(made, weight, *x.shape, xz=kind(17), wz=zero)
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    proto.graph.input[0].type.tensor_type.elem_type = element
    (found,) = built.run(proto, {"x": x})
    wanted = (x.astype(int) - 17) @ (weight.astype(int) - zero.astype(int))
    np.testing.assert_array_equal(found, wanted)


IN_A_RUN = {
    "odd steps": ("MatMulInteger", (7, 24), (5, 7), {}),
    "a border": ("ConvInteger", (16, 4, 3, 3), (1, 4, 6, 7), {"pads": [1, 1, 1, 1]}),
    "a border of lines": (
        "ConvInteger",
        (32, 1, 3, 3),
        (1, 32, 6, 7),
        {"group": 32, "pads": [1] * 4},
    ),
}


@pytest.mark.parametrize(("op", "size", "data", "given"), IN_A_RUN.values(), ids=IN_A_RUN)
def test_what_is_filled_up_is_the_zero_point_of_a_run(op, size, data, given):
    signed = TensorProto.INT8
    weight, x = extreme(*size), RNG.integers(-128, 128, data).astype(np.int8)
    proto = integers(node(op, "x w xz", "o", **given), weight, *data)
    proto.graph.input[0].type.tensor_type.elem_type = signed
    proto.graph.input.append(helper.make_tensor_value_info("xz", signed, ()))
    (found,) = built.run(proto, {"x": x, "xz": np.array(-77, np.int8)})
    known = integers(node(op, "x w xz", "o", **given), weight, *data, xz=np.uint8(128 - 77))
    (wanted,) = built.run(known, {"x": x.view(np.uint8) ^ np.uint8(128)})
    np.testing.assert_array_equal(found, wanted)
