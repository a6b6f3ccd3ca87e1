"""The sums of the weights of the leaves that samples reach, as generated code.

    for some samples (in parallel), for tree, for 16 of the samples:
        16 nodes = root ; until none changes: node = child[x <= threshold] of node
        for each weight of the nodes: y[sample, target] += weight

The fields of a node that a step reads take 16 bytes, and a tree stays in the cache for the samples
of a parallel task. Each step depends on the one before. So several walks are interleaved: of 16
samples, or of 16 trees if there is one sample. Then the trees are divided into shares with sums of
their own. Otherwise sums are in the order of the trees, as in ONNX Runtime: many votes of a forest
are equal, and then rounding decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._lazy_tvm import relax, tirx, tvm
from ...errors import ModelError
from .converting import ROWS_APART, Call
from .forest import Forest, ForestError

# With at least this many steps down in all, a parallel loop is faster despite its start.
_WORTH_THREADS = 1 << 11
_DEPTH = 8  # about how many steps a sample takes in a tree
_AT_ONCE = 16  # interleaved walks
_GROUPS = 8  # the least number of groups of samples, where groups are larger than `_AT_ONCE`
_TOGETHER = 64  # the most samples of a group
_SHARES = 32  # the most shares of trees
_FEWEST = 8  # the least number of trees of a share
_STARTS = {"SUM": 0.0, "MIN": float("inf"), "MAX": float("-inf")}
# The places of a node's words.
_FEATURE = 0
_THRESHOLD = 1
_CHILD = 2


def walked_down(call: Call) -> Any:
    """The sum, minimum or maximum of the leaves' weights: float32, a column for each target.

    A target that has no weight in any leaf is zero.
    """
    samples, features = call.shape(0)
    forest = _forest(call, features)
    walk = _Walk(
        samples, len(forest.roots), call.attribute("n_targets"), call.dtype(0),
        call.attribute("aggregate_function", "SUM"), bool(forest.missing.any()),
    )  # fmt: skip
    tables = [relax.const(table, str(table.dtype)) for table in walk.tables(forest)]
    words = {"primfunc_name_hint": "forest", "primfunc_attrs": {ROWS_APART: 1}}
    made = call.bb.emit_te(walk.compute, call.inputs[0], *tables, **words)
    return relax.op.astype(call.emit(relax.op.sum(call.emit(made), axis=0)), "float32")


def _forest(call: Call, features: int) -> Forest:
    try:
        forest = Forest.of(call.attributes.get, call.dtype(0))
    except ForestError as error:
        raise ModelError(f"{call.operator}: {error}", "Export the model again.") from error
    if forest.feature.size and not 0 <= forest.feature.min() <= forest.feature.max() < features:
        raise ModelError(
            f"{call.operator}: a node asks for a feature beyond the {features} that there are",
            "Check the shapes given with --input-shape, or export the model again.",
        )
    return forest


@dataclass(frozen=True)
class _Walk:
    """A walk of some samples down some trees. dtype: the type of comparisons and sums.

    has_missing: whether any node sends a NaN to the branch of `less or equal`.
    """

    samples: int
    trees: int
    targets: int
    dtype: str
    how: str
    has_missing: bool

    @property
    def shares(self) -> int:
        """The number of shares of the trees."""
        alone = self.samples == 1 and self.how == "SUM"
        return max(1, min(_SHARES, self.trees // _FEWEST)) if alone else 1

    @property
    def together(self) -> int:
        """The number of samples in a group."""
        return min(self.samples, max(_AT_ONCE, min(_TOGETHER, self.samples // _GROUPS)))

    @property
    def groups(self) -> int:
        """The number of groups of samples."""
        return -(-self.samples // self.together)

    def tables(self, forest: Forest) -> list[np.ndarray]:
        """The tables that the program reads beside the samples."""
        first, second = forest.child[0::2], forest.child[1::2]
        bits = forest.threshold.view(np.int32) if self.dtype == "float32" else np.zeros_like(first)
        nodes = np.stack([forest.feature, bits, first, second], axis=1)
        tables = [nodes, forest.roots, forest.starts, forest.targets, forest.weights]
        tables += [forest.missing] if self.has_missing else []
        return tables + ([] if self.dtype == "float32" else [forest.threshold])

    def compute(self, *given: Any) -> Any:
        """In TE, from the samples and the tables: [shares, samples, targets]."""
        shape = [(self.shares, self.samples, self.targets)]
        build = lambda ins, outs: _Program(self, ins, outs[0]).build()  # noqa: E731
        return tvm.te.extern(shape, given, build, name="forest", dtype=[self.dtype])


class _Program:
    """The statements of a walk in TIR."""

    def __init__(self, walk: _Walk, given: Any, made: Any) -> None:
        self.walk, self.T = walk, tvm.script.ir_builder.tirx
        proxies = map(self.T.buffer_proxy, given)
        self.x, self.node, self.roots, self.starts, self.target, self.weight, *rest = proxies
        self.missing = rest.pop(0) if walk.has_missing else None
        self.thresholds = rest
        self.y = self.T.buffer_proxy(made)

    def build(self) -> Any:
        """The whole statement."""
        T, walk = self.T, self.walk  # noqa: N806
        tasks = walk.shares * walk.groups
        parallel = tasks > 1 and walk.samples * walk.trees * _DEPTH >= _WORTH_THREADS
        with tvm.script.ir_builder.IRBuilder() as builder:
            with (T.parallel if parallel else T.serial)(0, tasks) as task:
                self.share, self.group = task // walk.groups, task % walk.groups
                with self._samples() as sample, T.serial(0, walk.targets) as target:
                    self.y[self.share, sample, target] = self._number(_STARTS[walk.how])
                with self._ways() as ways:
                    self._down(ways)
                if walk.how != "SUM":
                    self._fill()
            return builder.get()

    @contextmanager
    def _samples(self) -> Iterator[Any]:
        """A loop over the samples of the group."""
        first, end = self._bounds(self.group, self.walk.together, self.walk.samples)
        with self.T.serial(0, end - first) as at:
            yield first + at

    def _bounds(self, number: Any, size: int, count: int) -> tuple[Any, Any]:
        """The begin and end of a part of this size; the last part may be shorter."""
        first = number * size
        return first, first + size if count % size == 0 else tirx.min(first + size, count)

    @contextmanager
    def _ways(self) -> Iterator[list[tuple[Any, Any, Any]]]:
        """Loops over blocks of walks: (tree, sample, whether it is not a copy) for each."""
        T, walk = self.T, self.walk  # noqa: N806
        if walk.samples == 1:
            first, end = self._trees()
            with T.serial(0, (end - first + _AT_ONCE - 1) // _AT_ONCE) as block:
                yield [(tree, 0, valid) for tree, valid in _clamped(first, block, _AT_ONCE, end)]
            return
        first, end = self._bounds(self.group, walk.together, walk.samples)
        many = min(_AT_ONCE, walk.together)
        with (
            T.serial(0, walk.trees) as tree,
            T.serial(0, (end - first + many - 1) // many) as block,
        ):
            yield [(tree, sample, valid) for sample, valid in _clamped(first, block, many, end)]

    def _trees(self) -> tuple[Any, Any]:
        """The begin and end of the share's trees."""
        trees, shares = self.walk.trees, self.walk.shares
        return self.share * trees // shares, (self.share + 1) * trees // shares

    def _down(self, ways: list[tuple[Any, Any, Any]]) -> None:
        """Walk some samples down some trees, and add the weights of their leaves."""
        T = self.T  # noqa: N806
        nodes = [T.buffer_proxy(T.alloc_buffer((1,), "int32", scope="local")) for _ in ways]
        changed = T.buffer_proxy(T.alloc_buffer((1,), "int32", scope="local"))
        for node, (tree, _, _) in zip(nodes, ways, strict=True):
            node[0] = self.roots[tree]
        changed[0] = 1
        with T.While(tirx.NE(changed[0], 0)):
            changed[0] = 0
            for node, (_, sample, _) in zip(nodes, ways, strict=True):
                below = T.buffer_proxy(T.alloc_buffer((1,), "int32", scope="local"))
                below[0] = self.node[node[0], _CHILD + self._side(node[0], sample)]
                changed[0] = tirx.bitwise_or(changed[0], tirx.bitwise_xor(below[0], node[0]))
                node[0] = below[0]
        for node, (_, sample, valid) in zip(nodes, ways, strict=True):
            with T.If(valid), T.Then():
                self._add(node[0], sample)

    def _add(self, node: Any, sample: Any) -> None:
        with self.T.serial(0, self.starts[node + 1] - self.starts[node]) as step:
            at = self.starts[node] + step
            place = self.share, sample, self.target[at]
            self.y[place] = self._with(self.y[place], self.weight[at])

    def _side(self, node: Any, sample: Any) -> Any:
        """Which child comes next: 1 if the feature is at most the threshold, else 0."""
        value = self.x[sample, self.node[node, _FEATURE]]
        is_less = tirx.Cast("int32", value <= self._threshold(node))
        if self.missing is None:
            return is_less
        return tirx.Select(tirx.isnan(value), self.missing[node], is_less)

    def _threshold(self, node: Any) -> Any:
        if self.thresholds:
            return self.thresholds[0][node]
        return tirx.reinterpret("float32", self.node[node, _THRESHOLD])

    def _with(self, sum_: Any, weight: Any) -> Any:
        if self.walk.how == "SUM":
            return sum_ + weight
        return (tirx.min if self.walk.how == "MIN" else tirx.max)(sum_, weight)

    def _fill(self) -> None:
        """Set targets without a weight to zero."""
        start = self._number(_STARTS[self.walk.how])
        with self._samples() as sample, self.T.serial(0, self.walk.targets) as target:
            value = self.y[0, sample, target]
            filled = tirx.Select(tirx.EQ(value, start), self._number(0.0), value)
            self.y[0, sample, target] = filled

    def _number(self, value: float) -> Any:
        return tirx.const(value, self.walk.dtype)


def _clamped(first: Any, block: Any, many: int, end: Any) -> list[tuple[Any, Any]]:
    """The places of a block and whether each is valid; those beyond the end repeat the last."""
    places = [first + block * many + at for at in range(many)]
    return [(tirx.min(place, end - 1), place < end) for place in places]
