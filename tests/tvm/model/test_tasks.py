"""What a task's key sees, and what it does not."""

import inspect
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tvm
from helpers import built
from helpers.built import HOST
from helpers.graphs import model, node, randn
from helpers.programs import PROGRAMS, conv2d, conv2d_clip, matmul, pool
from tvm_ffi import structural_equal

from ansor_deploy._tvm import collect
from ansor_deploy.model.prepare import merge
from ansor_deploy.model.relax.extract import _task, extract
from ansor_deploy.space.canonical_text import (
    canonical_program,
    canonical_text,
    check_text,
    normalized,
    parse,
)
from ansor_deploy.space.default_schedule import default_schedule
from ansor_deploy.space.trace import dump, replay
from ansor_deploy.system.digest import sha256

TESTS = Path(__file__).parents[2]
PRINT_KEYS = """
from helpers import built, graphs, programs
from ansor_deploy.space.canonical_text import canonical_text
from ansor_deploy.system.digest import sha256
for name, make in programs.PROGRAMS.items():
    print(name, sha256(canonical_text(make()["main"])))
"""


def task_of(mod, name="fused_task", target=HOST):
    text = canonical_text(mod["main"])
    return _task(name, text, parse(text), 1, target)


def key_of(mod):
    return task_of(mod).key.workload


def tasks_of(proto, target=HOST):
    return list(dict.fromkeys(extract(built.imported(proto, target).mod, target).values()))


def renamed(mod):
    """The same program under other variable, buffer and block names."""
    script = mod["main"].script()
    for name in sorted(set(re.findall(r"\b(?:v_\w+|i\d+|ax\d+|x|x_\d+)\b", script))):
        script = re.sub(rf"\b{name}\b", f"other_{name}", script)
    script = re.sub(r'sblock\("(?!root)(\w+)"\)', r'sblock("other_\1")', script)
    return tvm.IRModule({"main": tvm.script.from_source(script)})


def keys_printed():
    """By a process whose hashes differ from this one's."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    command = [sys.executable, "-c", PRINT_KEYS]
    child = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    return child.stdout


@pytest.fixture(scope="module")
def texts():
    """The canonical text of each program."""
    return {name: canonical_text(make()["main"]) for name, make in PROGRAMS.items()}


def test_keys_are_the_same_in_every_process(texts):
    ours = [f"{name} {sha256(text)}" for name, text in texts.items()]
    assert keys_printed().splitlines() == ours


@pytest.mark.parametrize("name", ["conv residual", "softmax", "layer norm", "gather", "max pool"])
def test_names_are_not_in_the_key(name):
    mod = PROGRAMS[name]()
    other = renamed(mod)
    assert other["main"].script() != mod["main"].script()
    assert key_of(other) == key_of(mod)


def test_a_text_is_parsed_without_reading_the_source_around_every_frame(monkeypatch):
    text = canonical_text(matmul(12, 40, 48)["main"])
    monkeypatch.setattr(inspect, "getframeinfo", None)
    assert canonical_text(parse(text)["main"]) == text


def blocks_of(mod):
    return [block.name_hint for block in collect(mod["main"].body, tvm.s_tir.SBlock)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_of_a_function_is_that_of_its_text(name):
    func = PROGRAMS[name]()["main"]
    program, text = canonical_program(func), canonical_text(func)
    parsed = parse(text)
    assert structural_equal(parsed["main"], program["main"])
    assert blocks_of(program) == blocks_of(parsed)
    assert canonical_text(program["main"]) == canonical_text(parsed["main"]) == text
    assert structural_equal(parsed["main"], normalized(func))
    assert set(re.findall(r"\bv\d+\b", program.script()))


def test_a_text_of_another_program_is_refused():
    program, own = (f(matmul(8, 8, 8)["main"]) for f in (canonical_program, canonical_text))
    check_text(own, program)
    with pytest.raises(RuntimeError, match="does not reproduce"):
        check_text(canonical_text(matmul(8, 8, 16)["main"]), program)


def test_two_programs_have_one_key_only_if_they_are_equal(texts):
    assert len(set(texts.values())) == len(texts)


def test_shapes_paddings_dtypes_and_constants_are_in_the_key():
    variants = [
        conv2d(14, 8, 16),
        conv2d(15, 8, 16),
        conv2d(14, 8, 16, stride=2),
        conv2d(14, 8, 16, pad=0),
        PROGRAMS["conv float16"](),
        PROGRAMS["conv float64"](),
        PROGRAMS["conv bare"](),
        pool("max", 2, 16),
        pool("avg", 2, 16),
    ]
    assert len({key_of(mod) for mod in variants}) == len(variants)


def test_a_scalar_constant_is_in_the_key():
    mod = conv2d_clip()
    assert "6.0" in mod.script()
    text = canonical_text(mod["main"]).replace("T.float32(6.0)", "T.float32(5.0)")
    assert key_of(parse(text)) != key_of(mod)


def test_a_buffer_of_free_layout_is_in_the_key():
    fixed = conv2d(14, 8, 16)
    fixed["main"] = fixed["main"].with_attr("layout_free_buffers", [])
    assert key_of(fixed) != key_of(conv2d(14, 8, 16))


def test_the_function_s_own_name_and_pattern_are_not_in_the_key():
    mod = conv2d(14, 8, 16)
    func = mod["main"].with_attr("global_symbol", "fused_conv2d_7").with_attr("op_pattern", 4)
    assert canonical_text(func) == canonical_text(mod["main"])


def test_the_target_is_in_the_key():
    wide = replace(HOST, cores=HOST.cores + 1)
    one, other = task_of(matmul(8, 8, 8)), task_of(matmul(8, 8, 8), target=wide)
    assert one.key.workload == other.key.workload
    assert one.key.target != other.key.target


def test_a_trace_replays_on_an_equal_program_with_other_names():
    mod = PROGRAMS["conv residual"]()
    text = dump(default_schedule(task_of(mod).mod, HOST).trace)
    assert structural_equal(
        replay(task_of(renamed(mod)).mod, text).mod, default_schedule(task_of(mod).mod, HOST).mod
    )


def twin_convs(*extra):
    nodes = [node("Conv", "x a", "p", pads=[1] * 4), node("Conv", "p b", "q", pads=[1] * 4)]
    weights = {"a": randn(0, 8, 8, 3, 3), "b": randn(1, 8, 8, 3, 3)}
    return model([*nodes, *extra], {"x": (1, 8, 6, 6)}, ("q",), weights)


def test_the_weight_counts_the_calls_of_equal_programs():
    convs = [task for task in tasks_of(twin_convs()) if task.workload.op == "conv2d"]
    assert [task.weight for task in convs] == [2]


def test_rows_that_there_are_not_are_no_task():
    none = model([node("Mul", "x w", "y")], {"x": (0, 8)}, constants={"w": randn(0, 8)})
    assert tasks_of(none) == []


def test_a_reshape_and_a_scan_are_no_tasks():
    nodes = [node("Flatten", "x", "f"), node("CumSum", "f a", "y")]
    assert tasks_of(model(nodes, {"x": (2, 3, 4)}, constants={"a": np.array(1)})) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (conv2d(14, 8, 16), conv2d(28, 32, 64)),
        (matmul(8, 16, 32), matmul(64, 64, 48)),
        (pool("max", 2, 16), pool("max", 2, 64)),
    ],
)
def test_shapes_are_not_in_the_family(one, other):
    assert task_of(one).workload.family == task_of(other).workload.family


def test_different_operators_are_different_families():
    names = ["conv residual", "conv bare", "matmul", "max pool", "avg pool odd", "softmax", "add"]
    families = {task_of(PROGRAMS[name]()).workload.family for name in names}
    assert len(families) == len(names)


@pytest.mark.parametrize(
    ("groups", "weights", "op"),
    [(1, (8, 8, 3, 3), "conv2d"), (8, (8, 1, 3, 3), "depthwise_conv2d")],
)
def test_the_anchor_operator_is_named(groups, weights, op):
    nodes = [node("Conv", "x w", "c", group=groups), node("Relu", "c", "y")]
    proto = model(nodes, {"x": (1, 8, 6, 6)}, constants={"w": randn(0, *weights)})
    assert op in [task.workload.op for task in tasks_of(proto)]


@pytest.mark.parametrize(
    ("name", "op"), [("fused_layer_norm1_add", "layer_norm"), ("strided_slice2", "strided_slice")]
)
def test_an_operator_of_two_words_is_named_by_both(name, op):
    assert task_of(PROGRAMS["layer norm"](), name).workload.op == op


@pytest.mark.parametrize("groups", [1, 4, 16])
def test_a_name_says_by_how_much_a_convolution_is_dilated(groups):
    """No shape says it, and titles are made of names and shapes."""
    nodes = [
        node("Conv", "x w", "a", strides=[2, 2], pads=[1, 1, 1, 1], group=groups),
        node("Conv", "a w", "y", dilations=[1, 3], pads=[1, 3, 1, 3], group=groups),
    ]
    weights = {"w": randn(0, 16, 16 // groups, 3, 3)}
    found = tasks_of(model(nodes, {"x": (1, 16, 28, 28)}, constants=weights))
    names = [one.name for one in found if "conv2d" in one.name]
    assert [name.rpartition("_d")[2] for name in names] == ["conv2d", "3"]


def test_flops_and_traffic_of_a_matmul():
    workload = task_of(matmul(8, 16, 32)).workload
    assert workload.flops == pytest.approx(2 * 8 * 16 * 32, rel=0.1)
    assert workload.bytes == 4 * (8 * 16 + 16 * 32 + 32 + 8 * 32)


def test_a_table_counts_by_its_look_ups():
    looked_up = task_of(PROGRAMS["gather"]()).workload.bytes
    assert looked_up == 4 * (12 * 24) * 2 + 8 * 12


def test_a_task_knows_how_many_bytes_of_weights_its_model_reads():
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h w", "k"), node("MatMul", "k v", "y")]
    weights = {"w": randn(0, 16, 16), "v": randn(1, 16, 8)}
    tasks = tasks_of(model(nodes, {"x": (4, 16)}, constants=weights))
    assert {task.reuse_distance for task in tasks} == {4 * (16 * 16 + 16 * 8)}


def test_models_share_tasks_and_keep_their_weights():
    shared, own = task_of(conv2d(8, 16, 32)), task_of(matmul(4, 8, 16))
    models = [SimpleNamespace(tasks=[replace(shared, weight=3)])]
    models.append(SimpleNamespace(tasks=[own, replace(shared, weight=2)]))
    weights = {task.key: (task.weight, task.per_model) for task in merge(models)}
    assert weights == {shared.key: (5, (3, 2)), own.key: (1, (0, 1))}
    assert shared.per_model == (1,)


def test_a_name_of_many_operators_is_short():
    nodes = [node("Neg" if at % 2 else "Exp", f"h{at}", f"h{at + 1}") for at in range(40)]
    (task,) = extract(built.imported(model(nodes, {"h0": [8]}, ("h40",))).mod, HOST).values()
    assert task.name == "_".join(["exp", "negative"] * 6 + ["etc"] + ["exp", "negative"] * 3)
