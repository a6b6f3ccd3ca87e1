"""Kernels beside another engine's nodes, over the smallest groups that both compute."""

import pytest

from ansor_deploy.runtime.profile import KernelTime, Profile
from ansor_deploy.ship.race.node_groups import groups
from ansor_deploy.ship.race.peers import EngineNode
from ansor_deploy.views.profile import beside_lines


def kernel(seconds, *nodes):
    named = tuple({"name": name, "op": "Relu"} for name in nodes)
    return KernelTime("kernel", "kernel", seconds, (), None, named)


def test_what_shares_a_node_is_one_group():
    ours = Profile(
        9e-3, (kernel(1e-3, "a", "b"), kernel(2e-3, "c"), kernel(4e-3, "d"), kernel(5e-4))
    )
    theirs = [
        EngineNode("fused", "FusedConv", 2e-3, ("b", "c")),
        EngineNode("last", "Relu", 1e-3, ("d",)),
        EngineNode("reorder", "ReorderInput", 3e-3, ()),
        EngineNode("copy", "Concat", 5e-3, ("e",)),
    ]
    rest, joined, last, alone = groups(ours, theirs)
    assert (joined.nodes, joined.kernels, joined.parts) == (("a", "b", "c"), (0, 1), ("fused",))
    assert (joined.ours_ms, joined.theirs_ms) == pytest.approx((3.0, 2.0))
    assert joined.ratio == pytest.approx(1.5)
    assert (last.nodes, last.kernels, last.parts) == (("d",), (2,), ("last",))
    assert (rest.nodes, rest.kernels, rest.parts) == ((), (3,), ("reorder",))
    assert (alone.nodes, alone.kernels, alone.ratio) == (("e",), (), None)


def test_groups_are_joined_by_those_between():
    ours = Profile(1e-3, (kernel(1e-3, "a", "b"), kernel(1e-3, "c", "d")))
    (only,) = groups(ours, [EngineNode("one", "X", 1e-3, ("b", "c"))])
    assert (only.nodes, only.kernels) == (("a", "b", "c", "d"), (0, 1))


def test_what_is_said_of_groups():
    ours = Profile(1e-3, (kernel(1e-3, "conv", "relu"),))
    lines = beside_lines("X 1.0", groups(ours, [EngineNode("c", "Conv", 2e-3, ("conv",))]))
    assert lines[0].split() == [
        "nodes;",
        "X",
        "1.0",
        "with",
        "its",
        "profiler",
        "on",
        "ours",
        "theirs",
        "ratio",
    ]
    assert lines[1].split() == ["conv", "and", "1", "more", "1.00", "ms", "2.00", "ms", "0.50"]
    assert lines[2].split() == ["all", "1.00", "ms", "2.00", "ms", "0.50"]
