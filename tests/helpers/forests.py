"""Random forests: full trees of a depth, in the form of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def forest(
    trees: int,
    depth: int,
    features: int,
    modes: Sequence[str] = ("BRANCH_LEQ",),
    seed: int = 0,
    missing: bool = False,
) -> dict[str, Any]:
    """The attributes `nodes_*` of trees. Thresholds are halves, so that features may equal them.

    A tree's branches have the numbers below 2**depth - 1; its leaves come after them.
    """
    rng = np.random.default_rng(seed)
    branches, every = 2**depth - 1, 2 ** (depth + 1) - 1
    inner = [at < branches for at in range(every)] * trees
    made = {
        "nodes_treeids": [tree for tree in range(trees) for _ in range(every)],
        "nodes_nodeids": [*range(every)] * trees,
        "nodes_featureids": rng.integers(0, features, len(inner)).tolist(),
        "nodes_values": (rng.integers(-3, 4, len(inner)) / 2).tolist(),
        "nodes_modes": [str(rng.choice(modes)) if branch else "LEAF" for branch in inner],
        "nodes_truenodeids": [2 * at + 1 if at < branches else 0 for at in range(every)] * trees,
        "nodes_falsenodeids": [2 * at + 2 if at < branches else 0 for at in range(every)] * trees,
    }
    if missing:
        made["nodes_missing_value_tracks_true"] = rng.integers(0, 2, len(inner)).tolist()
    return made


def leaf_weights(
    nodes: dict[str, Any], what: str, targets: Sequence[int], every: bool = True, least: float = -1
) -> dict[str, Any]:
    """The attributes of leaf weights: for each of the targets, or for one of them at random."""
    rng = np.random.default_rng(1)
    ends = [at for at, mode in enumerate(nodes["nodes_modes"]) if mode == "LEAF"]
    pairs = [(at, target) for at in ends
             for target in (targets if every else [int(rng.choice(targets))])]  # fmt: skip
    return {
        f"{what}_treeids": [nodes["nodes_treeids"][at] for at, _ in pairs],
        f"{what}_nodeids": [nodes["nodes_nodeids"][at] for at, _ in pairs],
        f"{what}_ids": [target for _, target in pairs],
        f"{what}_weights": rng.uniform(least, 1, len(pairs)).tolist(),
    }
