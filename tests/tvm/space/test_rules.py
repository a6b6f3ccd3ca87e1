"""Whatever the rules derive computes what the program computes, and random decisions fit."""

import random
from dataclasses import replace
from functools import cache, partial

import pytest
import tvm
from helpers import built
from helpers.programs import PROGRAMS, program
from tvm import te
from tvm.s_tir.meta_schedule.testing import te_workload as w

from ansor_deploy.ship.verify.tolerance import compare
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.loops import finish_levels
from ansor_deploy.space.question import Guess, Random
from ansor_deploy.space.rule import shipped_rules

# Rules of which the program keeps a tile of the result in registers.
REGISTER_TILES = ("register-tile", "row-tile", "strip-tile", "transposed")
TARGETS = [built.with_vectors(64, 32), built.with_vectors(32), built.with_vectors(16)]


def _moved(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[te.Tensor]:
    """An image and a pass over it that changes its layout."""
    image = te.placeholder(shape, name="image")
    return [image, tvm.topi.transpose(tvm.topi.add(image, 1.0), axes)]


OPERATORS = {
    "conv1d": partial(w.conv1d_nlc, 1, 16, 8, 32, 3, 2, 1),
    "conv2d": partial(w.conv2d_nhwc, 1, 8, 8, 8, 32, 3, 1, 1),
    "conv3d": partial(w.conv3d_ndhwc, 1, 4, 6, 6, 4, 16, 3, 1, 1),
    "matmul": partial(w.batch_matmul_nkkm, 2, 16, 24, 32),
    "grouped": partial(w.conv2d_nhwc, 1, 8, 8, 16, 32, 3, 1, 1, 1, 2),
    "grouped narrow": partial(w.conv2d_nhwc, 1, 6, 6, 12, 24, 3, 1, 1, 1, 4),
    "dilated": partial(w.conv2d_nhwc, 1, 9, 9, 8, 32, 3, 1, 2, 2),
    "depthwise": partial(w.depthwise_conv2d_nhwc, 1, 8, 8, 32, 3, 2, 1),
    "transposed": partial(w.conv2d_transpose_nhwc, 1, 4, 4, 8, 16, 4, 2, 1),
    "transposed odd": partial(w.conv2d_transpose_nhwc, 1, 4, 4, 8, 16, 3, 2, 1),
    "capsule": partial(w.conv2d_capsule_nhwijc, 1, 6, 6, 4, 8, 3, 2, 1, 2),
    "norm": partial(w.norm_bmn, 1, 64, 1024),
    "norm of many": partial(w.norm_bmn, 16, 8, 64),
    "softmax": partial(w.softmax_mn, 12, 64),
    "conv bn relu": partial(w.conv2d_nhwc_bn_relu, 1, 8, 8, 8, 32, 3, 1, 1),
    "image to channels first": partial(_moved, (13, 24, 40), (2, 0, 1)),
    "image to channels last": partial(_moved, (24, 13, 40), (1, 2, 0)),
    "transposed product": partial(w.transpose_batch_matmul, 1, 16, 2, 16),
}
FAST = [
    *("conv 13x13", "conv to prime", "conv to 3", "pool nchw", "scaled softmax", "layer norm odd"),
    *("mean of image", "sum of ends", "argmax of row", "two products", "product then softmax"),
    *("batched transposed", "gemv", "dot", "instance norm", "mean of all", "shared middle"),
    *("gated sum", "attention of tokens", "masked attention"),
]


def attention(rows: int, heads: int, width: int) -> tvm.IRModule:
    """Products of transposed queries and keys, then softmax."""
    q = te.placeholder((rows, heads, width), name="q")
    k = te.placeholder((rows, heads, width), name="k")
    d = te.reduce_axis((0, width))
    scores = te.compute(
        (heads, rows, rows), lambda h, i, j: te.sum(q[i, h, d] * k[j, h, d], axis=d)
    )
    return program([q, k], tvm.topi.nn.softmax(scores, -1))


def module(name: str) -> tvm.IRModule:
    if name in PROGRAMS:
        return PROGRAMS[name]()
    if name == "attention":
        return attention(12, 2, 16)
    func = te.create_prim_func(OPERATORS[name]())
    return tvm.IRModule({"main": func.with_attr("global_symbol", "main")})


@cache
def sketches(name: str, target):
    return derive(module(name), target, shipped_rules("llvm")).sketches


@pytest.mark.parametrize("name", ["conv2d", "matmul", "dilated", "conv bn relu"])
def test_a_panel_too_large_for_its_cache_is_summed_up_in_parts(name):
    target = replace(built.with_vectors(32), cores=1, l2_bytes=1024)
    (sketch, *_) = sketches(name, target)
    made = sketch.program(Guess())
    asked = [decision for decision in made.decisions if decision.question.about == "parts"]
    assert asked
    assert asked[0].option > 1
    for have, want in zip(
        built.loop_outputs(made.sch.mod), built.loop_outputs(module(name)), strict=True
    ):
        assert compare(have, want)[0]


def questions(rows: int, columns: int, depth: int, target) -> dict[str, object]:
    """What is asked about a product, and guessed."""
    func = te.create_prim_func(w.batch_matmul_nkkm(1, rows, columns, depth))
    mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    (first, *_) = derive(mod, target, shipped_rules("llvm")).sketches
    return {one.question.about: one.option for one in first.program(Guess()).decisions}


@pytest.mark.parametrize(("l1_bytes", "guess"), [(1 << 20, False), (1 << 10, True)])
def test_packing_what_is_no_constant_is_a_choice(l1_bytes, guess):
    target = replace(built.with_vectors(32), l1_bytes=l1_bytes)
    assert questions(128, 64, 32, target)["pack"] == guess


@pytest.mark.parametrize(("columns", "parts"), [(512, True), (520, False)])
def test_rows_at_a_power_of_two_share_a_part_of_the_cache(columns, parts):
    target = replace(built.with_vectors(32), cores=1, l2_bytes=1 << 18)
    assert ("parts" in questions(16, columns, 512, target)) == parts


@pytest.mark.parametrize(("turn", "name"), list(enumerate([*OPERATORS, "attention", *FAST])))
def test_every_sketch_computes_what_the_program_computes(turn, name):
    """For each width of vectors in turns, and in turns as guessed and at random."""
    target = TARGETS[turn % 3]
    want, rng = built.loop_outputs(module(name)), random.Random(0)
    found = sketches(name, target)
    assert 0 < len(found) <= 16  # two products, each in four structures
    for at, sketch in enumerate(found, turn):
        have = built.loop_outputs(sketch.program((Guess(), Random(rng))[at % 2]).sch.mod)
        for one, other in zip(have, want, strict=True):
            assert compare(one, other)[0], (target.name, str(sketch))


def fits(sketch, rng) -> bool:
    try:
        sketch.program(Random(rng))
    except (RuntimeError, ValueError):
        return False
    return True


@pytest.mark.parametrize(("turn", "name"), list(enumerate([*OPERATORS, "attention", *FAST])))
def test_random_decisions_fit(turn, name):
    """For each width of vectors in turns, of the sketches that the test before has derived."""
    rng = random.Random(1)
    for sketch in sketches(name, TARGETS[turn % 3]):
        assert all(fits(sketch, rng) for _ in range(2)), str(sketch)


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("conv bn relu", {"always-inline", "register-tile"}),
        ("conv2d", {"add-cache-stage", "register-tile"}),
        ("transposed", {"add-cache-stage", "transposed"}),
        ("softmax", {"row-fusion"}),
        ("norm", {"reduction-factorisation"}),
        ("gated sum", {"register-tile"}),
        ("image to channels first", {"always-inline", "transpose-tile"}),
        ("attention", {"add-cache-stage", "register-tile", "row-fusion"}),
    ],
)
def test_the_first_sketch_of_an_operator(name, rules):
    first = sketches(name, replace(TARGETS[0], cores=2))[0]
    assert {step.rule.name for step in first.path} - {"skip"} == rules


@pytest.mark.parametrize(
    ("name", "along_reads"), [("image to channels first", 0), ("image to channels last", 1)]
)
def test_a_tile_is_passed_along_the_lines_that_lie_farther_apart(name, along_reads):
    (sketch,) = sketches(name, TARGETS[0])
    made = sketch.program(Guess())
    (order,) = (one for one in made.decisions if one.question.about == "order")
    assert order.option == along_reads


@pytest.mark.parametrize("name", ["conv2d", "conv bn relu", "matmul", "capsule"])
def test_multi_level_tiling_computes_the_same_where_no_register_tile_is(name):
    rules = [r for r in shipped_rules("llvm") if r.name not in REGISTER_TILES]
    found = derive(module(name), TARGETS[1], rules).sketches
    assert len(found) == 3
    want = built.loop_outputs(module(name))
    rng = random.Random(2)
    for sketch in found:
        for chooser in (Guess(), Random(rng)):
            have = built.loop_outputs(sketch.program(chooser).sch.mod)
            assert compare(have[-1], want[-1])[0], str(sketch)


def test_rules_say_why_they_pass():
    answers = derive(module("conv2d"), TARGETS[0], shipped_rules("llvm")).answers
    assert all(answer.text.startswith(("applies", "passes: ")) for answer in answers)


def test_levels_that_are_too_few_are_told_how_many_they_must_be():
    with pytest.raises(ValueError, match="the 6 levels of the pattern SSRSRS, and not 3"):
        finish_levels(None, "b0", [[], [], []], None)
