"""Quantised networks make the same bytes by each of a processor's sets of instructions.

They are those of an evaluation in NumPy, of all outputs that hang on no sum of floats.
"""

from dataclasses import replace

import numpy as np
import pytest
from helpers import built, graphs
from helpers.quantised_nets import NAMES, network

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


def made(proto, target):
    if lacks(target.triple, target.cpu, target.features):
        pytest.skip("this processor lacks the instructions")
    return built.run(proto, graphs.random_feeds(proto), target)


def bits(array):
    return np.ascontiguousarray(array).view(np.uint8)


def evaluation(proto):
    """The outputs that are known to the last bit, in NumPy; None for others."""
    names = [one.name for one in proto.graph.output]
    known = evaluated(canonical_graph(proto), graphs.random_feeds(proto), names)
    return [known.get(name) for name in names]


def assert_same(proto, *targets):
    first, *others = [made(proto, target) for target in targets]
    expected = [h if k is None else k for h, k in zip(first, evaluation(proto), strict=True)]
    others.append(expected)
    for other in others:
        for have, want in zip(other, first, strict=True):
            np.testing.assert_array_equal(bits(have), bits(want))


@pytest.mark.parametrize("name", NAMES)
def test_vectors_of_any_size_and_matrices_make_the_same_bytes(name):
    matrices = [] if lacks(AMX.triple, AMX.cpu, AMX.features) else [AMX]
    assert_same(network(name), AVX2, VNNI, *matrices)


def test_so_do_products_and_sums_apart():
    assert_same(network("residual:dynamic"), AVX2, SSE4)
