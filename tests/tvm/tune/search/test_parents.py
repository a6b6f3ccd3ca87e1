"""Which parents have children: those that are fast, or expected to be."""

import random
from dataclasses import replace

import pytest
from helpers.built import HOST
from helpers.programs import conv2d

from ansor_deploy.model.relax.extract import _task
from ansor_deploy.space.canonical_text import canonical_text, parse
from ansor_deploy.space.derivation import derive
from ansor_deploy.space.rule import shipped_rules
from ansor_deploy.tune.search.context import SearchContext
from ansor_deploy.tune.search.evolution import Evolution
from ansor_deploy.tune.search.evolution_options import EvolutionOptions
from ansor_deploy.tune.search.genome import Genome
from ansor_deploy.tune.search.variation import resample


def genome(template, rng, unroll):
    """Random decisions, of which the last is given."""
    *others, last = resample(template, rng)
    return Genome(0, (*others, replace(last, index=unroll)))


@pytest.mark.parametrize("learnt", [True, False])
def test_parents_have_children_by_their_fitness(learnt):
    text, rng = canonical_text(conv2d(14, 32, 64)["main"]), random.Random(0)
    rules = [rule for rule in shipped_rules(HOST.kind) if rule.name != "register-tile"]
    task = _task("task", text, parse(text), 1, HOST)
    sketches = derive(task.mod, HOST, rules).sketches[:1]
    options = EvolutionOptions(fresh=0, crossed=0, breeding=1)
    evolution = Evolution(sketches, task, SearchContext(HOST, rules, options=options), rng)
    made = [genome(sketches[0].guesses, rng, at % 2) for at in range(40)]
    for at, one in enumerate(made if learnt else []):
        evolution.add(one, 1e-1 if at % 2 else 1e-3)
    evolution.update()
    children = evolution.breed(made[:2])
    slow = sum(alike(child, made[1]) > alike(child, made[0]) for child in children)
    assert len(children) > 50
    assert slow < len(children) / 4 if learnt else slow > len(children) / 4


def alike(one, other):
    """How many of their decisions are the same."""
    return sum(a == b for a, b in zip(one.decisions, other.decisions, strict=True))
