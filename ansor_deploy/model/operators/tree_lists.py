"""TreeEnsemble's lists of branches and leaves, as the lists of nodes of the older operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import numpy_helper

from .forest import ForestError

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_MEMBER = len(_MODES)  # the number of BRANCH_MEMBER


def as_attributes(given: Callable[[str], Any]) -> dict[str, Any]:
    """The attributes of a TreeEnsembleRegressor with the same trees.

    given: an attribute of the TreeEnsemble by its name; None if there is none. A branch that tests
    for several values becomes one branch for each value.

    Raises:
        ForestError: a branch leads to nothing or tests for no value, or a node has no tree.
    """
    lists = _Lists(given)
    lists.split_members()
    leaves, branches = len(lists.targets), len(lists.modes)
    trees = lists.trees(given("tree_roots"), leaves)
    nothing = [0] * leaves
    return {
        "nodes_treeids": trees,
        "nodes_nodeids": list(range(branches + leaves)),
        "nodes_featureids": [*lists.features, *nothing],
        "nodes_values": [*lists.splits, *map(float, nothing)],
        "nodes_modes": [*(_MODES[mode] for mode in lists.modes), *["LEAF"] * leaves],
        "nodes_truenodeids": [*lists.sides[1], *nothing],
        "nodes_falsenodeids": [*lists.sides[0], *nothing],
        "nodes_missing_value_tracks_true": [*lists.missing, *nothing],
        "target_treeids": trees[branches:],
        "target_nodeids": list(range(branches, branches + leaves)),
        "target_ids": lists.targets,
        "target_weights": lists.weights,
    }


class _Lists:
    """The branches; the leaves are numbered behind them."""

    def __init__(self, given: Callable[[str], Any]) -> None:
        tensor = lambda name: numpy_helper.to_array(given(name)).astype(float).tolist()  # noqa: E731
        self.modes = [int(mode) for mode in tensor("nodes_modes")]
        self.features, self.splits = list(given("nodes_featureids")), tensor("nodes_splits")
        self.missing = list(given("nodes_missing_value_tracks_true") or [0] * len(self.modes))
        self.targets, self.weights = list(given("leaf_targetids")), tensor("leaf_weights")
        members = np.array(tensor("membership_values")) if given("membership_values") else []
        ends = np.flatnonzero(np.isnan(members))
        self._members = [part[~np.isnan(part)] for part in np.split(np.array(members), ends)]
        self.sides = [self._side(given, side) for side in ("false", "true")]

    def _side(self, given: Callable[[str], Any], side: str) -> list[int]:
        """Where each branch leads; leaf n is -1 - n until all branches are known."""
        leads, leaf = given(f"nodes_{side}nodeids"), given(f"nodes_{side}leafs")
        return [-1 - at if is_leaf else at for at, is_leaf in zip(leads, leaf, strict=True)]

    def split_members(self) -> None:
        """Split each branch that tests for several values into one for each; number the leaves."""
        asked = iter(self._members)
        for node in [at for at, mode in enumerate(self.modes) if mode == _MEMBER]:
            self._chain(node, [float(value) for value in next(asked, [])])
        count = len(self.modes)
        self.sides = [[at if at >= 0 else count - 1 - at for at in side] for side in self.sides]

    def _chain(self, node: int, values: list[float]) -> None:
        if not values:
            raise ForestError("a branch asks for one of no values")
        for value in values[:-1]:
            self.modes[node], self.splits[node] = _MODES.index("BRANCH_EQ"), value
            following = len(self.modes)
            for known in (self.modes, self.features, self.splits, self.missing, *self.sides):
                known.append(known[node])
            self.sides[0][node] = node = following
        self.modes[node], self.splits[node] = _MODES.index("BRANCH_EQ"), values[-1]

    def trees(self, roots: Any, leaves: int) -> list[int]:
        """The tree of each branch and leaf."""
        found = np.full(len(self.modes) + leaves, -1)
        level = np.array(roots)
        found[level] = np.arange(len(level))
        pairs = np.array(self.sides).T
        for _ in range(len(found)):
            inner = level[level < len(self.modes)]
            if not inner.size:
                break
            below = pairs[inner]
            if below.size and not 0 <= below.min() <= below.max() < len(found):
                raise ForestError("a branch leads to where there is nothing")
            found[below] = found[inner][:, None]
            level = np.unique(below)
        if (found < 0).any():
            raise ForestError("a branch or a leaf is of no tree")
        return [int(tree) for tree in found]
