"""The cost model on made-up programs: it ranks, learns from failures, and keeps what it learnt."""

import os

import numpy as np
import pytest

from ansor_deploy.tune.search import cost_model
from ansor_deploy.tune.search.cost_model import CostModel
from ansor_deploy.tune.search.features import LENGTH, decode, encode

WEIGHTS = np.zeros(LENGTH)
WEIGHTS[[3, 40, 77]] = (1.0, -0.5, 0.7)


def programs(count, seed=0):
    rng = np.random.default_rng(seed)
    shapes = rng.integers(1, 5, count)
    return [rng.uniform(0, 3, (stores, LENGTH)).astype(np.float32) for stores in shapes]


def latency(features):
    """A sum over statements, as the model's is."""
    return float(1e-3 / (0.5 + np.exp(np.tanh(features @ WEIGHTS - 1)).sum()))


def taught(count=400, path=None, scale=1.0, warn=print):
    model = CostModel(path, warn)
    for number, features in enumerate(programs(count)):
        model.add("task", f"trace {number}", latency(features) * scale, features)
    model.update()
    return model


def rank_correlation(model, count=200):
    test = programs(count, seed=1)
    true = np.argsort(np.argsort([-latency(features) for features in test]))
    said = np.argsort(np.argsort(model.predict(test)))
    return np.corrcoef(true, said)[0, 1]


def test_it_ranks_programs_that_it_has_not_seen():
    assert rank_correlation(taught()) > 0.7


def test_it_says_nothing_before_it_was_taught():
    model = CostModel()
    assert not model.trained
    assert not model.predict(programs(3)).any()
    assert not model.update()


def test_tasks_of_different_speed_teach_the_same():
    assert rank_correlation(taught(scale=1e3)) == pytest.approx(rank_correlation(taught()))


def test_a_failure_scores_below_what_works():
    model = CostModel()
    good, bad = programs(2, seed=3)
    for number in range(40):
        model.add("task", f"good {number}", 1e-3, good)
        model.add("task", f"bad {number}", float("inf"), bad)
    model.update()
    scores = model.predict([good, bad])
    assert scores[0] > scores[1] + 0.5


def test_a_task_of_failures_only_is_no_error():
    model = CostModel()
    for number, features in enumerate(programs(20)):
        model.add("task", str(number), float("inf"), features)
    assert model.update()
    assert np.isfinite(model.predict(programs(5))).all()


def test_it_learns_anew_only_when_enough_was_added():
    model = taught(100)
    extra = programs(30, seed=9)
    learnt = []
    for number, features in enumerate(extra):
        model.add("task", f"more {number}", latency(features), features)
        learnt.append(model.update())
    assert learnt.index(True) == 19  # the twentieth is a fifth
    model.add("task", "more 0", 1.0, extra[0])  # known: no growth
    assert not model.update()


def test_it_is_taught_the_same_twice():
    test = programs(50, seed=4)
    assert (taught().predict(test) == taught().predict(test)).all()


def test_the_newest_are_what_it_learns_from(monkeypatch):
    monkeypatch.setattr(cost_model, "MEMORY", 50)
    assert taught(400).predict(programs(5)).shape == (5,)


def test_a_kept_model_answers_as_the_one_before(tmp_path):
    path = tmp_path / "registry.db.models" / "target.ubj"
    model, test = taught(path=path), programs(20, seed=2)
    model.save()
    again = CostModel(path)
    assert again.trained
    assert (again.predict(test) == model.predict(test)).all()
    assert [entry.name for entry in path.parent.iterdir()] == ["target.ubj"]


def test_it_is_kept_whatever_the_umask_lets_a_group_write(tmp_path):
    path = tmp_path / "registry.db.models" / "target.ubj"
    before = os.umask(0o002)
    try:
        taught(60, path=path).save()
    finally:
        os.umask(before)
    assert CostModel(path).trained


def test_a_kept_model_is_not_taught_the_same_again(tmp_path):
    path = tmp_path / "target.ubj"
    taught(path=path).save()
    again = CostModel(path)
    for number, features in enumerate(programs(400)):
        again.add("task", f"trace {number}", latency(features), features)
    assert not again.update()


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "flipped"])
def test_a_damaged_model_costs_a_warning_and_is_made_anew(tmp_path, damage):
    path, warnings = tmp_path / "target.ubj", []
    taught(60, path=path).save()
    whole = path.read_bytes()
    flipped = whole[:99] + bytes([whole[99] ^ 1]) + whole[100:]
    half = whole[: len(whole) // 2]
    damaged = {"cut": half, "empty": b"", "text": b"no model", "flipped": flipped}
    path.write_bytes(damaged[damage])
    model = CostModel(path, warnings.append)
    assert not model.trained
    assert len(warnings) == 1
    assert str(path) in warnings[0]


def test_a_model_that_cannot_be_kept_costs_a_warning(tmp_path):
    (tmp_path / "file").touch()
    warnings = []
    taught(60, path=tmp_path / "file" / "target.ubj", warn=warnings.append).save()
    assert any("is not kept" in message for message in warnings)


def test_features_survive_the_registry():
    (features,) = programs(1, seed=6)
    back = decode(encode(features))
    assert back.dtype == np.float32
    assert np.allclose(back, features, rtol=1e-3)
    assert encode(back) == encode(features)


@pytest.mark.parametrize("blob", [b"", b"nonsense", encode(np.zeros((1, 7))), encode(np.zeros(0))])
def test_bytes_that_are_no_features_are_none(blob):
    assert decode(blob) is None
