"""Quantised networks make the same bytes by each of a processor's sets of instructions.

They are those of an evaluation in NumPy, of all outputs that hang on no sum of floats.
"""

from dataclasses import replace

import numpy as np
import pytest
from helpers import graphs
from helpers.quantised_nets import NAMES, network
from helpers.together import Together

from ansor_deploy.model.canonicalize import canonical_graph
from ansor_deploy.model.evaluation import evaluated
from ansor_deploy.system.environment import shipped
from ansor_deploy.system.host import lacks
from ansor_deploy.target import load_target


def instructions(name, cpu, *features, **given):
    found = load_target(name, [shipped("targets")])
    return replace(found, cpu=cpu, features=features, cores=1, **given)


VNNI = instructions("intel-cpu-avx512", "x86-64-v4", "+avx512vnni")
AMX = instructions("intel-cpu-avx512", "x86-64-v4", "+avx512vnni", "+amx-tile", "+amx-int8")
AVX2 = instructions("intel-cpu-avx2", "x86-64-v3")
# Without instructions that multiply and add.
SSE4 = instructions("intel-cpu-avx2", "x86-64-v2", vector_bytes=16)
SUMS = "residual:dynamic"


def lacking(target):
    return lacks(target.triple, target.cpu, target.features)


@pytest.fixture(scope="module")
def made():
    """Of each target that this processor is one of, what the networks are by its library."""
    networks = {name: network(name) for name in NAMES}
    found = {one: Together(networks, target=one) for one in (AVX2, VNNI, AMX) if not lacking(one)}
    return {**found, SSE4: Together({SUMS: network(SUMS)}, target=SSE4)}


def bits(array):
    return np.ascontiguousarray(array).view(np.uint8)


def evaluation(proto):
    """The outputs that are known to the last bit, in NumPy; None for others."""
    names = [one.name for one in proto.graph.output]
    known = evaluated(canonical_graph(proto), graphs.random_feeds(proto), names)
    return [known.get(name) for name in names]


def assert_same(name, first, *others):
    first, *others = [one.outputs(name) for one in (first, *others)]
    known = evaluation(network(name))
    others.append([h if k is None else k for h, k in zip(first, known, strict=True)])
    for other in others:
        for have, want in zip(other, first, strict=True):
            np.testing.assert_array_equal(bits(have), bits(want))


@pytest.mark.parametrize("name", NAMES)
def test_vectors_of_any_size_and_matrices_make_the_same_bytes(name, made):
    if lacking(VNNI):
        pytest.skip("this processor lacks the instructions")
    matrices = [] if lacking(AMX) else [AMX]
    assert_same(name, *(made[one] for one in (AVX2, VNNI, *matrices)))


def test_so_do_products_and_sums_apart(made):
    assert_same(SUMS, made[AVX2], made[SSE4])
