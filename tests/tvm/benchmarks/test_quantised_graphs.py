"""Random quantised graphs: the same for the same seed, and right beside ONNX Runtime."""

import numpy as np
import pytest

from benchmarks.fuzz import quantised
from benchmarks.fuzz.quantised_graphs import Graph, RefusedError, Segment, Steps, answers


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_makes_a_graph_and_the_same_again(seed):
    made, again = quantised.graph(seed), quantised.graph(seed)
    assert [part.nodes for part in made.segments] == [part.nodes for part in again.segments]
    for part in made.segments:
        given = [one.name for one in part.read]
        proto = made.model(part.nodes, [one.name for one in part.made], given)
        for one, found in zip(
            part.made, answers(proto, {name: made.values[name] for name in given}), strict=True
        ):
            np.testing.assert_array_equal(found, made.values[one.name])


def test_steps_are_no_finer_than_what_two_right_results_differ_by():
    made = Graph(0)
    x, fine = made.input((4, 8)), Steps("", 2, 1e-30, 0)
    made.segments.append(Segment())
    made.integers(made.add("Relu", [made.numbers(x)]), fine)
    made.segments.append(Segment(off=1))
    y = made.add("LayerNormalization", [made.numbers(x), made.weights(8)])
    with pytest.raises(RefusedError, match="finer"):
        made.integers(y, fine)


# A convolution with a border of one tap, parts of odd scales, operators that take integers.
@pytest.mark.parametrize("seed", [160, 205, 264, 1154])
def test_a_graph_is_right(seed, tmp_path):
    ended = quantised.attempt({"seed": seed, "target": "host", "folder": str(tmp_path)})
    assert (ended["end"], ended["said"]) == ("done", "")


def test_an_integer_that_is_another_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(quantised, "answers", lambda *given: [one + 2 for one in answers(*given)])
    ended = quantised.attempt({"seed": 0, "target": "host", "folder": str(tmp_path)})
    assert ended["end"] == "wrong"
    assert "off by up to" in ended["said"]
