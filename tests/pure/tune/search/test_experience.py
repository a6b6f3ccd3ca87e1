"""What programs came to, described so that a search of other sizes can learn from it."""

import json
import math
import zlib

import numpy as np
import pytest
from helpers.registry_samples import TARGET, key, measurement, workload

from ansor_deploy.registry.store import Registry
from ansor_deploy.tune.search.evolution_options import EvolutionOptions
from ansor_deploy.tune.search.experience import Experience, row
from ansor_deploy.tune.search.features import LENGTH, decode, decode_choices, encode
from ansor_deploy.tune.search.neighbours import Block
from ansor_deploy.tune.search.surrogate import Surrogate, can_rank

ENOUGH = EvolutionOptions().enough
CONV = Block((1, 28, 28, 64, 3, 3, 32), (3, 3))
FEATURES = np.ones((3, LENGTH), dtype=np.float32)
MADE = [("rule register-tile/0", True), ("register", (1, 7, 2, 32)), ("location", "root")]


# In names and numbers


def test_a_program_is_described_by_sizes_and_choices():
    found = row(MADE, CONV)
    assert found["extent 3"] == 6
    assert found["window 0"] == pytest.approx(math.log2(3))
    assert found["register 0 3"] == 5
    assert found["register 0 times 1"] == pytest.approx(2)  # seven fit into 28 four times
    assert found["register 0 size"] + found["register 0 count"] == pytest.approx(
        math.log2(28**2 * 64)
    )
    assert found["location 0 root"] == found["rule register-tile/0 0"] == 1


def test_questions_of_a_kind_differ_by_their_order():
    found = row([("tile", (4, 7)), ("tile", (2, 16)), ("unroll", 16), ("unroll", 0)], CONV)
    assert (found["tile 0 0"], found["tile 1 1"]) == (2, 4)
    assert (found["unroll 0"], found["unroll 1"]) == (4, -1)
    assert not any("times" in name for name in found)


def test_what_lies_within_a_level_is_known_of_each_tile_and_of_all():
    found = row([("tile", (5, 2, 4)), ("tile", (3, 8, 1)), ("tile", (7, 2))], CONV)
    assert (found["tile 0 inside 1"], found["tile 0 inside 2"]) == (3, 2)
    assert (found["tiles 3 inside 1"], found["tiles 3 inside 2"]) == (6, 2)
    assert found["tiles 2 inside 1"] == found["tile 2 inside 1"] == 1


@pytest.mark.parametrize("meaning", [None, {"a": 1}, 1.5, (1, "a"), (1,) * 9, ()])
def test_what_has_no_number_says_nothing_of_it(meaning):
    for kind in ("odd", "tile"):
        assert all(math.isfinite(value) for value in row([(kind, meaning)], CONV).values())


def test_choices_are_kept_behind_the_features():
    blob = encode(FEATURES, MADE)
    assert np.array_equal(decode(blob), FEATURES)
    assert row(decode_choices(blob), CONV) == row(MADE, CONV)
    assert decode_choices(encode(FEATURES)) == []


@pytest.mark.parametrize(
    "tail", [b"nonsense", zlib.compress(b"[1]"), zlib.compress(b"{"), zlib.compress(b"[[1,2,3]]")]
)
def test_bytes_that_are_no_choices_decode_to_none(tail):
    blob = encode(FEATURES) + tail
    assert decode_choices(blob) == []
    assert np.array_equal(decode(blob), FEATURES)
    assert decode_choices(b"nonsense") == []


# The surrogate


def measured(channels, tiles=range(1, 33)):
    """Programs of a convolution, faster the nearer their tile is to a quarter of its columns."""
    block = Block((1, 28, 28, channels, 3, 3, 32), ())
    rows = [row([("register", (1, 1, 1, tile))], block) for tile in tiles]
    return Experience(rows, [1e-3 * (1 + abs(math.log2(4 * tile / channels))) for tile in tiles])


NOTHING = Experience([], [])


def trained(own, others=()):
    surrogate = Surrogate(others, ENOUGH)
    for numbers, latency in zip(own.rows, own.latencies, strict=True):
        surrogate.add(numbers, latency)
    surrogate.update()
    return surrogate


def best_of(surrogate, experience):
    return int(np.argmax(surrogate.predict(experience.rows)))


def test_it_ranks_the_programs_of_a_task_that_was_never_measured():
    surrogate = trained(NOTHING, [measured(size) for size in (16, 24, 32, 48, 96, 128)])
    unseen = measured(64)
    order = np.argsort(-surrogate.predict(unseen.rows))
    assert min(unseen.latencies[at] for at in order[:3]) < 1.2e-3
    assert np.mean([unseen.latencies[at] for at in order[:8]]) < np.mean(unseen.latencies) / 1.5


def test_it_learns_from_the_task_alone():
    own = measured(64)
    assert own.latencies[best_of(trained(own), own)] < 1.2e-3


def test_it_predicts_how_much_faster_a_program_is():
    own = measured(64)
    scores = trained(own).predict(own.rows)
    apart = math.log(max(own.latencies) / min(own.latencies))
    assert apart / 2 < scores.max() - scores.min() < apart * 1.1


def test_what_failed_is_ranked_behind_what_ran():
    own = measured(64)
    failed = [math.inf if at % 2 else time for at, time in enumerate(own.latencies)]
    scores = trained(Experience(own.rows, failed)).predict(own.rows)
    assert np.median(scores[0::2]) > np.median(scores[1::2])


def test_a_task_of_which_all_failed_is_no_hindrance():
    own = Experience(measured(64).rows, [math.inf] * 32)
    assert np.isfinite(trained(own, [measured(32)]).predict(own.rows)).all()


def test_a_few_programs_or_failures_are_not_enough():
    few = measured(64, range(1, ENOUGH))
    assert not can_rank([few, NOTHING], ENOUGH)
    assert can_rank([few, measured(32, range(1, 3))], ENOUGH)
    assert not can_rank([Experience(measured(64).rows, [math.inf] * 32)], ENOUGH)


# From the registry


def test_relatives_are_of_the_operator_and_were_measured(tmp_path):
    with Registry.open(tmp_path / "registry.db") as registry:
        registry.add_target(TARGET)
        registry.add_workloads([workload(n) for n in range(4)] + [workload(4, "matmul")])
        registry.add_batch(
            [measurement(key(n), 1e-3 * t) for n in (0, 1, 2) for t in (1, 2)][:5]
            + [measurement(key(4, "matmul"), t) for t in (1e-3, 2e-3)],
            [],
        )
        found = registry.alike(workload(0), TARGET.fingerprint, 8)
        assert found == [workload(1)]
        assert registry.alike(workload(3), TARGET.fingerprint, 1) in ([workload(0)], [workload(1)])
        assert registry.alike(workload(3), "0" * 64, 8) == []


def test_choices_of_others_are_data():
    """A registry may come from someone else."""
    deep = "[" * 100_000 + "]" * 100_000
    for text in (deep, json.dumps([["register", 1e400]]), json.dumps([["register", 10**400]])):
        decoded = decode_choices(encode(FEATURES) + zlib.compress(text.encode()))
        assert all(isinstance(value, float) for value in row(decoded, CONV).values())
