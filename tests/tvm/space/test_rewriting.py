"""Blocks replaced by equal computations: what they compute, how traces name them, and when."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import built
from helpers.programs import conv2d, conv2d_bare, conv2d_residual, conv_nd, grouped

from ansor_deploy._tvm import structural_equal, tvm
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.question import Guess
from ansor_deploy.space.rewriting import rewritings, rewritten
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.space.state import State
from ansor_deploy.space.trace import dump, replay
from ansor_deploy.tune.search.genome import recover

CORE = replace(built.with_vectors(32), cores=1)


def asymmetric():
    from helpers.programs import program
    from tvm import te, topi

    x = te.placeholder((2, 5, 9, 4), "float32", "x")
    w = te.placeholder((1, 3, 4, 7), "float32", "w")
    return program([x, w], topi.nn.conv2d_nhwc(x, w, 1, [0, 1, 0, 1], 1), free=(1,))


CASES = {
    "padded": (lambda: conv2d(7, 5, 6), "conv2d_nhwc", (2, 4)),
    "batch, no constants": (conv2d_bare, "conv2d_nhwc", (2, 4)),
    "one axis": (lambda: conv_nd(1), "conv1d_nwc", (2, 3, 4)),
    "three axes": (lambda: conv_nd(3), "conv3d_ndhwc", (2,)),
    "window of five": (lambda: conv2d(6, 3, 4, 5, 1, 2), "conv2d_nhwc", (2, 3)),
    "window of 1x3": (asymmetric, "conv2d_nhwc", (2, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rewritten_program_computes_the_same(name):
    make, block, sizes = CASES[name]
    *_, want = built.loop_outputs(make())
    for size in sizes:
        *_, have = built.loop_outputs(rewritten(make(), f"winograd {block} {size}"))
        np.testing.assert_allclose(have, want, 1e-4, 1e-5 * np.abs(want).max())


@pytest.mark.parametrize(
    ("make", "step"),
    [
        (lambda: conv2d(7, 5, 6), "magic conv2d_nhwc 2"),
        (lambda: conv2d(7, 5, 6), "winograd pad_temp 2"),
        (lambda: conv2d(8, 5, 6, stride=2), "winograd conv2d_nhwc 2"),
        (grouped, "winograd conv 2"),
    ],
    ids=["no such rewriting", "no convolution", "a stride", "groups"],
)
def test_what_does_not_fit_is_refused(make, step):
    with pytest.raises((ValueError, tvm.s_tir.ScheduleError)):
        rewritten(make(), step)


def of_rule(mod, rules=None, target=CORE):
    found = derive(mod, target, rules or shipped_rules("llvm"))
    assert not found.faults
    return [one for one in found.sketches if any(s[1] == "winograd" for s in one.steps)]


def test_a_trace_names_the_rewriting_and_holds_no_program():
    mod = conv2d(6, 8, 16)
    for sketch in of_rule(mod):
        made = sketch.program(Guess()).sch
        text = dump(made.trace)
        (step,) = rewritings(made.mod["main"])
        assert f'"\\"{step}\\""' in text
        assert structural_equal(replay(mod, text).mod, made.mod)


def test_a_trace_that_names_what_there_is_not_does_not_replay():
    mod = conv2d(6, 8, 16)
    text = dump(of_rule(mod)[0].program(Guess()).sch.trace)
    for wrong in ("magic conv2d_nhwc 4", "winograd pad_temp 4"):
        renamed = json.loads(text)
        for step in renamed[0]:
            if step[2] == ["ansor.rewriting"]:
                step[1][1] = f'"{wrong}"'
        with pytest.raises((ValueError, RuntimeError)):
            replay(mod, json.dumps(renamed))


class Sized(Guess):
    """Answers which size with the given one, all else with guesses."""

    def __init__(self, at):
        self.at = at

    def answer(self, question):
        return self.at if question.about == "size" else super().answer(question)


@pytest.mark.parametrize("make", [lambda: conv2d(6, 8, 16), conv2d_residual, lambda: conv_nd(1)])
def test_the_size_is_a_choice(make):
    *_, want = built.loop_outputs(make())
    (sketch,) = of_rule(make())
    assert [rule for _, rule in sketch.steps if rule != "always-inline"] == ["winograd"] * 2
    for at, size in enumerate("42"):
        made = sketch.program(Sized(at))
        assert made.decisions[0].question.about == "size"
        assert rewritings(made.sch.mod["main"])[0].endswith(f" {size}")
        *_, have = built.loop_outputs(made.sch.mod)
        np.testing.assert_allclose(have, want, 1e-4, 1e-5 * np.abs(want).max())


def test_the_decisions_of_a_recorded_program_are_found_again():
    found = derive(conv2d(6, 8, 16), CORE, shipped_rules("llvm")).sketches
    for sketch in of_rule(conv2d(6, 8, 16)):
        made = sketch.program(Sized(1))
        genome, again = recover(found, dump(made.sch.trace))
        assert genome.decisions == made.decisions
        assert again.sketch.steps == sketch.steps


def test_a_state_is_rewritten_once():
    sch = tvm.s_tir.Schedule(conv2d(6, 8, 16), debug_mask="none")
    state = State(sch, Guess()).rewritten("winograd", "conv2d_nhwc", [2])
    assert state.is_rewritten
    with pytest.raises(ValueError, match="once"):
        state.rewritten("winograd", "conv2d_nhwc", [2])


def test_weights_that_are_no_constants_are_left_alone():
    assert not of_rule(conv2d_bare())


def test_what_strict_asks_rewrites_nothing():
    assert not of_rule(conv2d(6, 8, 16), shipped_rules("llvm", "strict"))


def test_where_it_may_pay_it_comes_right_after_the_first_direct_computation():
    steps = [one.steps for one in derive(conv2d(6, 8, 16), CORE, shipped_rules("llvm")).sketches]
    rewriting = [any(rule == "winograd" for _, rule in path) for path in steps]
    assert rewriting[:3] == [False, True, False]


def test_it_is_the_default_where_it_surely_pays():
    for mod, steps in ((conv2d(28, 64, 64), 1), (conv2d(7, 4, 4), 0)):
        made = default_schedule(mod, CORE)
        assert len(rewritings(made.mod["main"])) == steps


@pytest.mark.parametrize(
    ("image", "cache", "steps"),
    [((256, 48, 16), 1 << 21, 0), ((256, 48, 16), 1 << 30, 1), ((80, 32, 16), 1 << 20, 1)],
)
def test_what_leaves_the_cache_between_its_stages_may_not_pay(image, cache, steps):
    """But what hardly does, does."""
    core = replace(built.with_vectors(64, 32), cores=1, l2_bytes=cache)
    made = default_schedule(conv2d(*image), core)
    assert len(rewritings(made.mod["main"])) == steps
