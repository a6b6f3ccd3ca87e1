"""Callbacks of a rewrite fail as any function does; inside TVM they could end the process."""

import traceback

import pytest
from helpers import programs

from ansor_deploy._tvm import structural_equal, structural_map, structural_mutate, tirx, tvm

BODY = programs.matmul(4, 4, 4)["main"].body
LOADS = tvm.ir.TensorLoad


def _no_text(node):
    """Raise an exception with a text that is no UTF-8, at which TVM ends the process."""
    raise KeyError("\udc80")


@pytest.mark.parametrize("order", ["pre", "post"])
def test_an_exception_comes_back_with_its_frames(order):
    with pytest.raises(KeyError) as caught:
        structural_map(BODY, ((tirx.Var, LOADS), _no_text), order)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "_no_text"


def test_a_mutators_exception_too():
    def inner(node, mutator):
        return structural_map(node, (LOADS, _no_text))

    with pytest.raises(KeyError):
        structural_mutate(BODY, (tirx.BufferStore, inner))


def test_a_callback_that_returns_nothing_is_named():
    def forgetful(node):
        pass

    with pytest.raises(TypeError, match=r"forgetful returned None for a TensorLoad"):
        structural_map(BODY, [(LOADS, forgetful)])


def test_rewrites_without_faults_are_as_before():
    def doubled(node, mutator):
        return tirx.Add(mutator.mutate(node.a), mutator.mutate(node.b))

    assert structural_map(BODY, (LOADS, lambda load: load)).same_as(BODY)
    assert structural_equal(structural_mutate(BODY, (tirx.Add, doubled)), BODY)
