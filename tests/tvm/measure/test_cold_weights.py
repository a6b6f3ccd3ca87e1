"""Timed calls take turns with copies of the weights, as many as a network reads in between."""

from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm import te, topi

from ansor_deploy.codegen.kernels.signature import signature
from ansor_deploy.measure import cold_weights, memory
from ansor_deploy.measure.measurer import Measurer
from ansor_deploy.model.relax.extract import task_of
from ansor_deploy.runtime import native
from ansor_deploy.runtime.tensors import tensor_bytes
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump
from ansor_deploy.system.environment import shipped
from ansor_deploy.target import load_target

TARGET = load_target("host", [shipped("targets")])
ROOM = 1 << 16


def arguments(*shapes, dtype="float32"):
    return [native.tensor(np.zeros(shape, dtype)) for shape in shapes]


def copies(given, weights, room=ROOM, bound=0):
    return cold_weights.with_copies(given, weights, room, bound, seed=0)


def places(calls, at):
    return [np.from_dlpack(call[at]).ctypes.data for call in calls]


def test_each_call_has_weights_of_its_own_and_the_same_of_all_else():
    given = arguments((8, 8), (32, 16), (16,), (8, 16))
    calls = copies(given, [1, 2])
    assert len(calls) == ROOM // (4 * (32 * 16 + 16))
    assert len({*places(calls, 1), *places(calls, 2)}) == 2 * len(calls)
    assert all(call[0].same_as(given[0]) and call[3].same_as(given[3]) for call in calls)
    assert [tuple(call[1].shape) for call in calls] == [(32, 16)] * len(calls)
    assert max(places(calls, 2)) - min(places(calls, 1)) < ROOM


def test_what_is_in_copies_is_no_zero_and_no_index_out_of_range():
    (call, *_) = copies(arguments((64, 4)), [0])
    values = np.from_dlpack(call[0])
    assert np.isfinite(values).all()
    assert values.std() > 0
    (call, *_) = copies(arguments((64, 4), dtype="int32"), [0], bound=3)
    assert set(np.from_dlpack(call[0]).flat) == {0, 1, 2}


def test_weights_of_another_type_than_the_largest_stay_the_same():
    given = [*arguments((64, 4)), *arguments((4,), dtype="int64")]
    calls = copies(given, [0, 1])
    assert all(call[1].same_as(given[1]) for call in calls)


@pytest.mark.parametrize(("weights", "room"), [([], ROOM), ([0], 0), ([0], 4 * 64)])
def test_there_are_none_where_less_than_two_fit(weights, room):
    assert copies(arguments((64,)), weights, room) == []


def test_small_weights_have_few_copies():
    assert len(copies(arguments((1,)), [0], room=1 << 20)) == cold_weights.MOST_COPIES


def test_all_copies_come_in_turn():
    seen = []
    calls = copies(arguments((64,), (8,)), [0], room=64 * 4 * 3)
    found = cold_weights.times(lambda *call: seen.append(places([call], 0)[0]), calls, 4, 2)
    assert len(found) == 2
    assert min(found) > 0
    assert seen[:3] * 3 == [*seen, seen[2]]
    assert set(seen) == set(places(calls, 0))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_other_call_has_other_tensors(count):
    calls = [["x", f"w{number}", "y"] for number in range(count)]
    found = cold_weights.alternating(calls, {0: "X", 2: "Y"})
    assert [call[1] for call in found] == [call[1] for call in calls] * (len(found) // count)
    assert [call[0] + call[2] for call in found] == ["xy", "XY"] * (len(found) // 2)


def matmul():
    shapes = {"x": (4, 64), "w": (64, 64), "b": (64,)}
    x, w, b = (te.placeholder(shape, name=name) for name, shape in shapes.items())
    y = topi.add(topi.matmul(x, w), b)
    func = te.create_prim_func([x, w, b, y]).with_attr("layout_free_buffers", [1, 2])
    return replace(task_of(func, "fused_matmul_add", TARGET), reuse_distance=1 << 20)


def test_the_weights_of_a_task_are_in_its_signature():
    assert signature(matmul().mod).weights == (1, 2)


def test_a_candidate_with_cold_weights_is_right_and_a_wrong_one_is_found():
    task = matmul()
    schedule = tvm.s_tir.Schedule(task.mod)
    name = schedule.get(schedule.get_child_blocks(schedule.get_sblock("root"))[0]).name_hint
    schedule.transform_layout(name, ("read", 1), lambda i, j: (j, i))
    with Measurer(TARGET) as measurer:
        good = dump(default_schedule(task.mod, TARGET).trace)
        right, wrong = measurer.measure(task, [good, dump(schedule.trace)])
        turns = measurer.head_to_head(task, [good])
    assert (right.error, wrong.error, turns[0].error) == ("", "wrong-output", "")
    assert len(right.seconds) >= 3
    assert len(turns[0].seconds) == 9


@pytest.mark.parametrize(
    ("distance", "l3_bytes", "room"),
    [
        (1 << 20, 1 << 23, 1 << 20),
        (1 << 30, 1 << 23, memory.BEYOND << 23),
        (1 << 30, 0, memory.BEYOND * TARGET.l2_bytes * TARGET.cores),
        (1 << 40, 1 << 33, memory.MOST_ROOM),
    ],
)
def test_copies_take_no_more_room_than_makes_them_cold(distance, l3_bytes, room):
    target = replace(TARGET, l3_bytes=l3_bytes)
    task = replace(matmul(), reuse_distance=distance)
    assert memory.room_for_copies(task, target) == room
    spec = signature(task.mod)
    tensors = sum(tensor_bytes(*one) for one in zip(spec.shapes, spec.dtypes, strict=True))
    assert 3 * tensors + room < memory.memory_of_trials(task, target) < 5 * tensors + room
