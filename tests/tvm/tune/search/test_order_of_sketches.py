"""Which sketches a search draws on, and when: the register tile first, the wide space after it."""

from collections import Counter

import numpy as np
import pytest
from helpers.built import HOST
from helpers.programs import conv2d, matmul

from ansor_deploy.measure.outcome import Outcome
from ansor_deploy.model.relax.extract import _task
from ansor_deploy.space.canonical_text import canonical_text, parse
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.tune.search import open_search
from ansor_deploy.tune.search.context import SearchContext
from ansor_deploy.tune.search.draft import draft
from ansor_deploy.tune.search.evolution_options import EvolutionOptions
from ansor_deploy.tune.search.features import decode, decode_choices
from ansor_deploy.tune.search.genome import recover

BATCH = 16
RULES = shipped_rules(HOST.kind)


def drawn_on(mod, batches):
    """The first sketch's size, and how many programs of each sketch the batches propose."""
    text = canonical_text(mod["main"])
    task = _task("task", text, parse(text), 1, HOST)
    sketches = derive(task.mod, HOST, RULES).sketches
    search = open_search("ansor", task, [], SearchContext(HOST, RULES))
    found = []
    for _ in range(batches):
        batch = search.propose(BATCH)
        found.append(Counter(recover(sketches, trace)[0].sketch for trace in batch))
        search.observe([Outcome(trace, (1e-3,)) for trace in batch])
    return sketches[0].size, found


@pytest.fixture(scope="module")
def convolution():
    return drawn_on(conv2d(14, 32, 64, stride=2), 3)  # without Winograd's, which take longest


def test_the_register_tile_is_sampled_first_and_the_wide_space_after_it(convolution):
    size, (first, _, third) = convolution
    assert size > 2 * BATCH
    assert first[0] >= BATCH * 3 // 4
    assert third[1] > 0


def test_the_default_of_every_sketch_is_measured_a_few_in_each_batch(convolution):
    size, batches = convolution
    assert size > BATCH
    seen = [set(batch) for batch in batches]
    assert len(seen[0]) == BATCH // 4
    assert len(set.union(*seen)) > len(seen[0])


def test_a_sketch_with_nothing_new_opens_the_next():
    size, (batch,) = drawn_on(matmul(2, 8, 16), 1)
    assert size < BATCH == batch.total()
    assert batch[1] > 1  # its default, and more


def test_the_first_programs_of_a_wide_space_fill_their_vectors():
    text = canonical_text(matmul(96, 96, 96)["main"])
    task = _task("task", text, parse(text), 1, HOST)
    wide = [rule for rule in RULES if rule.name.startswith(("multi-level", "skip"))]

    def drafts(programs):
        context = SearchContext(HOST, wide, options=EvolutionOptions(programs=programs))
        traces = open_search("ansor", task, [], context).propose(BATCH)
        return draft([decode(context.features(task, trace)) for trace in traces], HOST)

    chosen, drawn = drafts(4), drafts(1)
    assert np.exp(np.median(chosen) - np.median(drawn)) > 2


def test_a_program_without_features_keeps_its_choices():
    text = canonical_text(matmul(4, 8, 16)["main"])
    task, context = _task("task", text, parse(text), 1, HOST), SearchContext(HOST, RULES)
    made = [("rule winograd/0", True), ("tile", (4, 1))]
    context.remember(task, "a trace", None, made)
    kept = context.features(task, "a trace")
    assert decode(kept) is None
    assert decode_choices(kept) == [("rule winograd/0", True), ("tile", [4, 1])]
