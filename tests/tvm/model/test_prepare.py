"""What is said while a model is read."""

import numpy as np
import pytest
from helpers.built import HOST
from helpers.cli_inside import program
from helpers.graphs import model, node, randn

from ansor_deploy.model.prepare import prepare


@pytest.fixture
def shop(tmp_path):
    nodes = [node("Conv", "x a", "p"), node("Relu", "p", "q"), node("Conv", "q b", "y")]
    weights = {"a": randn(0, 8, 4, 3, 3), "b": randn(1, 4, 8, 3, 3)}
    proto = model(nodes, {"x": (1, 4, 8, 8)}, constants=weights)
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    return tmp_path


def test_each_stage_says_when_it_begins_and_how_far_it_is(shop):
    said = []
    stage = lambda name, _detail: said.append(name)  # noqa: E731
    prepared = prepare(shop / "net.onnx", HOST, [{}], stage, lambda *step: said.append(step))
    assert [one for one in said if isinstance(one, str)] == ["read", "import", "tasks"]
    first = said.index("tasks")
    for what, steps in (("passes", said[2:first]), ("tasks", said[first + 1 :])):
        assert steps == [(what, done, len(steps)) for done in range(1, len(steps) + 1)]
    assert len(prepared.tasks) == len(said) - first - 1


def test_what_is_read_is_reported_on_stderr(shop):
    result = program(shop, "tune", "net.onnx", "--registry", "r.db", "--trials", "0")
    lines = [line for line in result.stderr.splitlines() if line.startswith("[")]
    # A stage that takes long has lines of its steps, too.
    stages = dict.fromkeys(line.split()[0] for line in lines)
    assert list(stages)[:3] == ["[read]", "[import]", "[tasks]"]


def test_a_plan_without_a_terminal_is_its_answer_alone(shop):
    result = program(shop, "plan", "net.onnx", "--registry", "r.db")
    assert result.stdout.startswith("3 tasks of net.onnx on host")
    assert "[" not in result.stdout + result.stderr


def test_a_verbose_plan_says_why_it_assumes_one_size(tmp_path):
    nodes = [node("Reshape", "x sizes", "r"), node("Relu", "r", "y")]
    shape = {"x": ("batch", "seq", 8)}
    proto = model(nodes, shape, constants={"sizes": np.array([10, 4, 2])})
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    result = program(tmp_path, "plan", "net.onnx", "--registry", "r.db", "--verbose")
    said = " ".join(result.stderr.split())
    assert "x=1,10,8, which the file leaves open; other sizes do not fit: node 'r'" in said


@pytest.mark.parametrize("antialias", [0, 1])
def test_open_caches_get_room_or_one_size_where_a_node_takes_none(antialias, tmp_path):
    nodes = [node("Concat", "past x", "present", axis=2),
             node("Resize", "present - s", "y", mode="linear", antialias=antialias)]  # fmt: skip
    inputs = {"x": (1, 2, 1, 4), "past": (1, 2, "p", 4)}
    scales = {"s": np.array([1, 1, 2, 1], np.float32)}
    proto = model(nodes, inputs, ("y", "present"), constants=scales, opset=18)
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    said = []
    prepare(tmp_path / "net.onnx", HOST, stage=lambda name, detail: said.append((name, detail)))
    first, *more = (detail for name, detail in said if name == "sizes")
    assert first == "--context 1024, since the file leaves the rows of its caches open"
    assert bool(more) == antialias
    assert all(one.startswith("--input-shape past=1,2,127,4 alone, since node 'y'") for one in more)
