"""Schedules as text, and back."""

import json

import pytest
import tvm
from helpers import built
from helpers.programs import PROGRAMS, conv2d, matmul, transpose
from tvm_ffi import structural_equal

from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump, replay
from ansor_deploy.system.digest import canonical_json

TARGET = built.with_vectors(32)


@pytest.mark.parametrize("name", ["conv residual", "gemv", "softmax", "two products", "add scalar"])
def test_a_trace_replays_to_the_same_program_and_text(name):
    mod = PROGRAMS[name]()
    sch = default_schedule(mod, TARGET)
    text = dump(sch.trace)
    again = replay(mod, text)
    assert structural_equal(again.mod, sch.mod)
    assert dump(again.trace) == text


def test_index_maps_travel():
    mod = transpose(1, 0)
    sch = tvm.s_tir.Schedule(mod, debug_mask="none")
    (block,) = sch.get_child_blocks(sch.get_sblock("root"))
    sch.transform_block_layout(block, lambda i, j: [j, i])
    copy = sch.cache_read(block, 0, "global")
    sch.transform_layout(copy, ("write", 0), lambda i, j: [j // 2, i, j % 2])
    assert not structural_equal(sch.mod, mod)
    assert structural_equal(replay(mod, dump(sch.trace)).mod, sch.mod)


def test_the_text_is_canonical_json():
    text = dump(default_schedule(conv2d(14, 32, 64), TARGET).trace)
    assert canonical_json(json.loads(text)) == text


def test_sampled_decisions_survive():
    mod = matmul(32, 32, 32)
    sch = tvm.s_tir.Schedule(mod, seed=7, debug_mask="none")
    loop, *_ = sch.get_loops(sch.get_sblock("T_matmul"))
    sch.split(loop, sch.sample_perfect_tile(loop, n=3, max_innermost_factor=8))
    sch.annotate(sch.get_sblock("root"), "probability", 0.5)
    assert structural_equal(replay(mod, dump(sch.trace)).mod, sch.mod)


@pytest.mark.parametrize("made_for", ["conv residual", "softmax", "add scalar"])
def test_a_trace_for_another_program_is_an_error(made_for):
    text = dump(default_schedule(PROGRAMS[made_for](), TARGET).trace)
    with pytest.raises(RuntimeError):
        replay(matmul(12, 40, 48), text)


@pytest.mark.parametrize(
    "nonsense", ["", "{", "null", "5", "[]", "{}", '["a"]', "[[], [], []]", '[[["Nonsense"]],[]]']
)
def test_what_is_no_trace_is_a_value_error(nonsense):
    with pytest.raises(ValueError):  # noqa: PT011 - JSON's messages and ours differ
        replay(transpose(1, 0), nonsense)
