"""A forest of decision trees as tables of all nodes and of the weights of leaves.

    node -> x[feature[node]] <= threshold[node] ? child[2 * node + 1] : child[2 * node]

All comparisons are reduced to this one: x < t is x <= the number before t, x > t is x <= t with the
children swapped, and x == t takes two nodes. A leaf is its own child.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Attributes = Callable[[str], Any]  # an attribute's value by its name; None if there is none
_LEAF = "LEAF"


class ForestError(ValueError):
    """The attributes do not describe a forest."""


@dataclass(frozen=True)
class Forest:
    """A forest as tables of int32 and of the type that comparisons use.

    roots: a node for each tree. missing: 1 where a NaN takes the branch of `less or equal`. starts:
    for each node, and for the end, where its part of targets and weights begins.
    """

    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    missing: np.ndarray
    roots: np.ndarray
    starts: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, given: Attributes, dtype: str) -> Forest:
        """The forest of a TreeEnsembleRegressor's attributes, compared in a type.

        Raises:
            ForestError: nodes are missing, duplicate, in a cycle or beyond the targets.
        """
        nodes = _Nodes(given, dtype)
        places = nodes.places("target")
        order, starts = _by_node(places, len(nodes.mode))
        weights = _floats(given, "target_weights").astype(dtype)
        targets = _whole(given, "target_ids")
        if targets.size and not 0 <= targets.min() <= targets.max() < (given("n_targets") or 0):
            raise ForestError("a leaf weighs for a target that there is not")
        if given("n_targets") == 1:  # ONNX Runtime takes the first weight of a leaf, and no sum
            _, order = np.unique(places, return_index=True)
            starts = _by_node(places[order], len(nodes.mode))[1]
        added = np.full(len(nodes.feature) - len(nodes.mode), starts[-1], starts.dtype)
        return cls(
            feature=nodes.feature.astype(np.int32),
            threshold=nodes.threshold,
            child=nodes.child.astype(np.int32),
            missing=nodes.missing.astype(np.int32),
            roots=nodes.roots.astype(np.int32),
            starts=np.concatenate([starts, added]).astype(np.int32),
            targets=targets[order].astype(np.int32),
            weights=weights[order],
        )


class _Nodes:
    """The nodes of the attributes `nodes_*`, and the second ones that equalities need."""

    def __init__(self, given: Attributes, dtype: str) -> None:
        self._given = given
        self.mode = np.array([_text(mode) for mode in given("nodes_modes") or []])
        self._keys = self._key("nodes_treeids", "nodes_nodeids")
        self._order = np.argsort(self._keys, kind="stable")
        if (np.diff(self._keys[self._order]) == 0).any():
            raise ForestError("two nodes of a tree have one number")
        self.feature = _whole(given, "nodes_featureids")
        self.threshold = _floats(given, "nodes_values").astype(dtype)
        tracks = _whole(given, "nodes_missing_value_tracks_true")
        self.missing = tracks if tracks.size else np.zeros_like(self.feature)
        self._link()
        self._unify()

    def _key(self, trees: str, nodes: str) -> np.ndarray:
        """One number for a pair of a tree's number and a node's."""
        return _whole(self._given, trees) * (1 << 32) + _whole(self._given, nodes)

    def places(self, whose: str) -> np.ndarray:
        """The places of the nodes that have weights."""
        return self._find(self._key(f"{whose}_treeids", f"{whose}_nodeids"))

    def _find(self, keys: np.ndarray) -> np.ndarray:
        known = self._keys[self._order]
        at = np.minimum(np.searchsorted(known, keys), max(0, len(known) - 1))
        if len(keys) and not (len(known) and (known[at] == keys).all()):
            raise ForestError("a node is named that there is not")
        return self._order[at]

    def _link(self) -> None:
        """Set the children of each node, and the roots."""
        trees, leaf = _whole(self._given, "nodes_treeids"), self.mode == _LEAF
        self.child = np.repeat(np.arange(len(self.mode)), 2)
        inner = np.flatnonzero(~leaf)
        for side, name in enumerate(("nodes_falsenodeids", "nodes_truenodeids")):
            keys = trees[inner] * (1 << 32) + _whole(self._given, name)[inner]
            self.child[2 * inner + side] = self._find(keys)
        reached = np.zeros(len(self.mode), bool)
        reached[self.child.reshape(-1, 2)[inner].ravel()] = True
        self.roots = np.flatnonzero(~reached)
        if len(self.roots) != len(np.unique(trees)):
            raise ForestError("a tree has no root, or several")
        _check_levels(self.child.reshape(-1, 2), leaf, self.roots)

    def _unify(self) -> None:
        """Make every node compare by <=."""
        leaf, mode = self.mode == _LEAF, self.mode
        self.feature = np.where(leaf, 0, self.feature)
        self.threshold = np.where(leaf, np.nan, self.threshold).astype(self.threshold.dtype)
        before = np.nextafter(self.threshold, np.array(-np.inf, self.threshold.dtype))
        missing = self.missing != 0
        equal = np.flatnonzero((mode == "BRANCH_EQ") | (mode == "BRANCH_NEQ"))
        turned = np.isin(mode, ("BRANCH_GT", "BRANCH_GTE", "BRANCH_NEQ"))
        if unknown := set(mode) - {_LEAF, *_BRANCHES}:
            raise ForestError(f"its branches are of the mode {unknown.pop()}")
        pairs = self.child.reshape(-1, 2)
        pairs[turned] = pairs[turned][:, ::-1]
        missing[turned] ^= True
        missing[mode == "BRANCH_NEQ"] = False  # NaN is not equal
        added = self._second(equal, pairs, before)
        below = np.isin(mode, ("BRANCH_LT", "BRANCH_GTE"))
        self.threshold = np.concatenate([np.where(below, before, self.threshold), before[equal]])
        self.missing = np.concatenate([missing, np.zeros(len(equal), bool)])
        self.feature = np.concatenate([self.feature, self.feature[equal]])
        self.child = np.concatenate([pairs, added]).ravel()

    def _second(self, equal: np.ndarray, pairs: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The children of the second nodes of equalities, which test that x is not less either."""
        added = pairs[equal][:, ::-1].copy()
        pairs[equal, 1] = len(self.mode) + np.arange(len(equal))
        return added


_BRANCHES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def _check_levels(pairs: np.ndarray, leaf: np.ndarray, roots: np.ndarray) -> None:
    """ForestError unless every path down ends, and each node is on one."""
    seen, level = np.zeros(len(leaf), bool), roots
    for _ in range(len(leaf)):
        seen[level] = True
        level = np.unique(pairs[level[~leaf[level]]])
        if not len(level):
            break
    if len(level) or not seen.all():
        raise ForestError("a node is below itself, or no way leads to it")


def _by_node(places: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(the order of weights by node, where those of each node begin)."""
    order = np.argsort(places, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=count))])
    return order, starts


def _whole(given: Attributes, name: str) -> np.ndarray:
    return np.array(given(name) or [], np.int64)


def _floats(given: Attributes, name: str) -> np.ndarray:
    """An attribute's numbers: a list, or a tensor of another type."""
    from onnx import TensorProto, numpy_helper

    tensor = given(f"{name}_as_tensor")
    if isinstance(tensor, TensorProto):
        return numpy_helper.to_array(tensor)
    return np.array(given(name) or [], np.float32) if tensor is None else np.asarray(tensor)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
